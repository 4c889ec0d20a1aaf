#include "common/launch.h"

#include <cstdlib>
#include <vector>

#include "common/failure.h"

namespace topoccl::bench {
namespace {

// One row per launcher. Of `ranks`, `localRanks` and `nodes` the first variable that is set counts.
struct Launcher {
  const char* name;
  const char* rank;
  std::vector<const char*> ranks;
  const char* localRank;
  std::vector<const char*> localRanks;
  std::vector<const char*> nodes;
  const char* mustBeSet;  // tells a started rank from a shell inside the job
  std::vector<const char*> jobKey;
};

// Order matters: mpirun inside a Slurm job sets its own variables next to Slurm's.
const std::vector<Launcher>& launchers() {
  static const std::vector<Launcher> table = {
      {"Open MPI mpirun",
       "OMPI_COMM_WORLD_RANK",
       {"OMPI_COMM_WORLD_SIZE"},
       "OMPI_COMM_WORLD_LOCAL_RANK",
       {"OMPI_COMM_WORLD_LOCAL_SIZE"},
       {},
       nullptr,
       {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri"}},
      {"MPICH mpirun",
       "PMI_RANK",
       {"PMI_SIZE"},
       "MPI_LOCALRANKID",
       {"MPI_LOCALNRANKS"},
       {},
       nullptr,
       {"PMI_PORT", "PMI_JOBID", "HYDRA_JOBID", "SLURM_JOB_ID"}},
      {"torchrun",
       "RANK",
       {"WORLD_SIZE"},
       "LOCAL_RANK",
       {"LOCAL_WORLD_SIZE"},
       {"GROUP_WORLD_SIZE"},
       nullptr,
       {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}},
      {"srun",
       "SLURM_PROCID",
       {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
       "SLURM_LOCALID",
       {},
       {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"},
       "SLURM_STEP_ID",
       {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
  };
  return table;
}

[[noreturn]] void reject(const Launcher& launcher, const std::string& message) {
  throw Failure(ExitCode::InvalidUsage, std::string(launcher.name) + ": " + message);
}

class Reader {
 public:
  Reader(const Launcher& launcher, const Environment& environment)
      : launcher_(launcher), environment_(environment) {}

  std::optional<int> number(const char* name) const {
    const auto text = environment_(name);
    if (!text) return std::nullopt;
    char* end = nullptr;
    const long value = std::strtol(text->c_str(), &end, 10);
    if (end == text->c_str() || *end != '\0' || value < 0 || value > 1 << 24) {
      reject(launcher_, std::string(name) + " is \"" + *text + "\"; it must be a number from 0");
    }
    return static_cast<int>(value);
  }

  std::optional<int> number(const std::vector<const char*>& names) const {
    for (const char* name : names) {
      if (const auto value = number(name)) return value;
    }
    return std::nullopt;
  }

 private:
  const Launcher& launcher_;
  const Environment& environment_;
};

bool applies(const Launcher& launcher, const Environment& environment) {
  if (!environment(launcher.rank)) return false;
  if (launcher.mustBeSet != nullptr && !environment(launcher.mustBeSet)) return false;
  for (const char* name : launcher.ranks) {
    if (environment(name)) return true;
  }
  return false;
}

// Both of what a person has to set by hand, or neither: with half of it ranks would start on their own.
void checkHalf(const Launcher& launcher, const Environment& environment) {
  if (launcher.mustBeSet != nullptr) return;  // half of it is ordinary in a shell inside the job
  const char* ranks = launcher.ranks.front();
  const bool hasRank = environment(launcher.rank).has_value();
  if (hasRank == environment(ranks).has_value()) return;
  throw Failure(ExitCode::BadArguments, std::string(hasRank ? launcher.rank : ranks) + " is set, but " +
                                            (hasRank ? ranks : launcher.rank) +
                                            " is not: set both to be a rank of a job, or none");
}

std::string jobKey(const Launcher& launcher, const Environment& environment) {
  std::string key = launcher.name;
  std::vector<const char*> names = launcher.jobKey;
  names.insert(names.end(), {"MASTER_ADDR", "MASTER_PORT"});
  for (const char* name : names) {
    const auto value = environment(name);
    if (value) key += std::string("|") + name + "=" + *value;
  }
  return key;
}

void checkOneHost(const Launcher& launcher, const Reader& reader, int ranks) {
  const int nodes = reader.number(launcher.nodes).value_or(1);
  const int localRanks = reader.number(launcher.localRanks).value_or(ranks);
  if (nodes <= 1 && localRanks >= ranks) return;
  reject(launcher, "the " + std::to_string(ranks) + " ranks sit on several hosts (" +
                       (nodes > 1 ? std::to_string(nodes) + " hosts" : std::to_string(localRanks) + " here") +
                       "); this version connects ranks of one host only. Start all ranks on one host");
}

Launch read(const Launcher& launcher, const Environment& environment) {
  const Reader reader(launcher, environment);
  Launch launch;
  launch.launcher = launcher.name;
  launch.rank = *reader.number(launcher.rank);
  launch.ranks = *reader.number(launcher.ranks);
  if (launch.rank >= launch.ranks) {
    reject(launcher, "rank " + std::to_string(launch.rank) + " of " + std::to_string(launch.ranks) +
                         " ranks: the environment contradicts itself");
  }
  launch.localRank = reader.number(launcher.localRank).value_or(launch.rank);
  checkOneHost(launcher, reader, launch.ranks);
  launch.jobKey = jobKey(launcher, environment);
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
  for (const Launcher& launcher : launchers()) {
    if (applies(launcher, filled)) return read(launcher, filled);
  }
  for (const Launcher& launcher : launchers()) checkHalf(launcher, filled);
  return std::nullopt;
}

}  // namespace topoccl::bench
