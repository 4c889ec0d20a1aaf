#include "common/launch.h"

#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <vector>

#include "common/failure.h"

namespace topoccl::bench {
namespace {

constexpr int kMaxRanks = 1 << 16;

enum class Kind {
  Mpi,
  Torchrun,
  ByHand,  // torchrun's variables without torchrun
  Slurm,
};

// One row per launcher. Of `ranks`, `localRanks` and `nodes` the first variable that is set counts.
struct Launcher {
  Kind kind;
  const char* name;
  const char* rank;
  std::vector<const char*> ranks;
  const char* localRank;
  std::vector<const char*> localRanks;
  std::vector<const char*> nodes;
  std::vector<const char*> jobKey;
};

// Inner ones first: torchrun may have been started by mpirun or srun, mpirun within a Slurm job.
const std::vector<Launcher>& launchers() {
  const auto torch = [](Kind kind, const char* name) {
    return Launcher{kind,
                    name,
                    "RANK",
                    {"WORLD_SIZE"},
                    "LOCAL_RANK",
                    {"LOCAL_WORLD_SIZE"},
                    {"GROUP_WORLD_SIZE"},
                    {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}};
  };
  static const std::vector<Launcher> table = {
      torch(Kind::Torchrun, "torchrun"),
      {Kind::Mpi,
       "Open MPI mpirun",
       "OMPI_COMM_WORLD_RANK",
       {"OMPI_COMM_WORLD_SIZE"},
       "OMPI_COMM_WORLD_LOCAL_RANK",
       {"OMPI_COMM_WORLD_LOCAL_SIZE"},
       {},
       {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri"}},
      {Kind::Mpi,
       "MPICH mpirun",
       "PMI_RANK",
       {"PMI_SIZE"},
       "MPI_LOCALRANKID",
       {"MPI_LOCALNRANKS"},
       {},
       {"PMI_PORT", "PMI_JOBID", "HYDRA_JOBID", "SLURM_JOB_ID"}},
      torch(Kind::ByHand, "the environment"),
      {Kind::Slurm,
       "srun",
       "SLURM_PROCID",
       {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
       "SLURM_LOCALID",
       {},
       {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"},
       {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
  };
  return table;
}

[[noreturn]] void reject(const std::string& message) {
  throw Failure(ExitCode::InvalidUsage, message);
}

struct Variable {
  std::string name;
  int value = 0;

  std::string text() const { return name + "=" + std::to_string(value); }
};

class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  bool has(const char* name) const { return environment_(name).has_value(); }

  std::optional<Variable> number(const char* name, int low) const {
    const auto text = environment_(name);
    if (!text) return std::nullopt;
    Variable variable{name};
    const char* const last = text->data() + text->size();
    const auto [end, error] = std::from_chars(text->data(), last, variable.value);
    if (error != std::errc() || end != last || variable.value < low || variable.value > kMaxRanks) {
      reject(std::string(name) + "=" + *text + " is not valid: must be a number from " + std::to_string(low) +
             " to " + std::to_string(kMaxRanks));
    }
    return variable;
  }

  std::optional<Variable> firstNumber(const std::vector<const char*>& names) const {
    for (const char* name : names) {
      if (const auto variable = number(name, 1)) return variable;
    }
    return std::nullopt;
  }

  // Whether this process can be a rank of the launcher at all, whatever its variables say.
  bool mayBeRankOf(const Launcher& launcher) const {
    if (launcher.kind == Kind::Torchrun) return has("TORCHELASTIC_RUN_ID");
    if (launcher.kind == Kind::ByHand) return !has("TORCHELASTIC_RUN_ID");
    if (launcher.kind == Kind::Mpi) return true;
    // Shells inside a job have Slurm's variables too: salloc's lacks the step, or has one of the reserved
    // numbers.
    constexpr unsigned long kFirstReservedStep = 0xfffffff0;
    const auto step = environment_("SLURM_STEP_ID");
    return step && std::strtoul(step->c_str(), nullptr, 10) < kFirstReservedStep;
  }

 private:
  const Environment& environment_;
};

// What one launcher says about this process.
struct Claim {
  const Launcher* launcher;
  Variable rank, ranks;
  std::optional<Variable> localRank, localRanks, nodes;

  bool agrees(const Claim& other) const {
    return rank.value == other.rank.value && ranks.value == other.ranks.value;
  }
  std::string text() const {
    return std::string(launcher->name) + " says " + rank.text() + " and " + ranks.text();
  }
};

void checkBelow(const std::optional<Variable>& smaller, const std::optional<Variable>& larger) {
  if (!smaller || !larger || smaller->value < larger->value) return;
  reject(smaller->text() + " and " + larger->text() + " contradict each other: " + smaller->name +
         " counts from 0, so it must be below " + larger->name);
}

std::optional<Claim> claimOf(const Launcher& launcher, const Reader& reader) {
  if (!reader.mayBeRankOf(launcher)) return std::nullopt;
  const auto rank = reader.number(launcher.rank, 0);
  const auto ranks = reader.firstNumber(launcher.ranks);
  if (!rank || !ranks) return std::nullopt;
  Claim claim{&launcher,
              *rank,
              *ranks,
              reader.number(launcher.localRank, 0),
              reader.firstNumber(launcher.localRanks),
              reader.firstNumber(launcher.nodes)};
  checkBelow(rank, ranks);
  checkBelow(claim.localRank, claim.localRanks ? claim.localRanks : ranks);
  if (claim.localRanks && claim.localRanks->value > ranks->value) {
    reject(claim.localRanks->text() + " and " + ranks->text() +
           " contradict each other: a host has more ranks "
           "than the job");
  }
  return claim;
}

// Both of what makes a rank, or neither: with half of it ranks would start on their own.
void checkHalf(const Launcher& launcher, const Reader& reader) {
  if (!reader.mayBeRankOf(launcher)) return;
  const auto ranks = reader.firstNumber(launcher.ranks);
  const bool hasRank = reader.has(launcher.rank);
  if (hasRank == ranks.has_value()) return;
  const std::string count = ranks ? ranks->name : launcher.ranks.front();
  throw Failure(ExitCode::BadArguments, (hasRank ? launcher.rank : count) + " is set, but " +
                                            (hasRank ? count : launcher.rank) +
                                            " is not: set both to be a rank of a job, or none");
}

// `outer` may say something else where it started the inner one.
void checkNesting(const Claim& inner, const Claim& outer) {
  if (inner.agrees(outer)) return;
  const bool isOuter = inner.launcher->kind == Kind::Torchrun || outer.launcher->kind == Kind::Slurm;
  if (isOuter && inner.launcher->kind != Kind::ByHand) return;
  reject("two launchers disagree: " + inner.text() + ", " + outer.text() +
         "; unset the variables of the one that did not start this process, by env -u " + outer.rank.name +
         " -u " + outer.ranks.name + " or env -u " + inner.rank.name + " -u " + inner.ranks.name);
}

void checkOneHost(const Claim& claim) {
  const bool areNodes = claim.nodes && claim.nodes->value > 1;
  if (!areNodes && (!claim.localRanks || claim.localRanks->value == claim.ranks.value)) return;
  reject(std::string(claim.launcher->name) + ": the ranks sit on several hosts (" + claim.ranks.text() +
         ", " + (areNodes ? claim.nodes : claim.localRanks)->text() +
         "); this version connects ranks of one host only. Start all ranks on one host");
}

// MPICH's variables don't tell one job from another, but its launcher leaves each rank a socket, of which the
// kernel knows the maker.
std::string makerOfLauncherSocket(const Environment& environment) {
  const std::string text = environment("PMI_FD").value_or("");
  const char* const last = text.data() + text.size();
  int descriptor = -1;
  const auto [end, error] = std::from_chars(text.data(), last, descriptor);
  if (error != std::errc() || end != last) return "";
  ucred maker{};
  socklen_t bytes = sizeof maker;
  const bool isKnown = getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &maker, &bytes) == 0 && maker.pid > 0;
  return isKnown ? "|made by " + std::to_string(maker.pid) : "";
}

std::string jobKey(const Launcher& launcher, const Environment& environment) {
  std::string key = launcher.name;
  std::vector<const char*> names = launcher.jobKey;
  names.insert(names.end(), {"MASTER_ADDR", "MASTER_PORT"});
  for (const char* name : names) {
    const auto value = environment(name);
    if (value) key += std::string("|") + name + "=" + *value;
  }
  if (launcher.kind == Kind::Mpi) key += makerOfLauncherSocket(environment);
  return key;
}

Launch combine(const std::vector<Claim>& claims, const Environment& environment) {
  const Claim& first = claims.front();
  Launch launch;
  launch.launcher = first.launcher->name;
  launch.rank = first.rank.value;
  launch.ranks = first.ranks.value;
  launch.jobKey = jobKey(*first.launcher, environment);
  std::optional<Variable> localRank;
  for (const Claim& claim : claims) {
    checkNesting(first, claim);
    if (!claim.agrees(first)) continue;
    checkOneHost(claim);
    if (!localRank) localRank = claim.localRank;
  }
  launch.localRank = localRank ? localRank->value : launch.rank;
  return launch;
}

}  // namespace

std::optional<std::string> processEnvironment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

std::optional<Launch> detectLaunch(const Environment& environment) {
  const Environment filled = [&](const std::string& name) {
    const auto value = environment(name);
    return value && value->empty() ? std::nullopt : value;
  };
  const Reader reader(filled);
  std::vector<Claim> claims;
  for (const Launcher& launcher : launchers()) {
    if (auto claim = claimOf(launcher, reader)) claims.push_back(*std::move(claim));
  }
  if (!claims.empty()) return combine(claims, filled);
  for (const Launcher& launcher : launchers()) checkHalf(launcher, reader);
  return std::nullopt;
}

}  // namespace topoccl::bench
