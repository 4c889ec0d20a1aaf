#include "common/launch.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>

#include "common/failure.h"

namespace topoccl::bench {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<Launch> detect(const Variables& variables) {
  return detectLaunch([&variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

std::string failureOf(const Variables& variables) {
  try {
    detect(variables);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::InvalidUsage);
    return failure.what();
  }
  return "";
}

const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "2"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                            {"PMIX_NAMESPACE", "1234"}};
const Variables kTorchrun = {{"RANK", "1"},
                             {"WORLD_SIZE", "2"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"MASTER_ADDR", "127.0.0.1"},
                             {"MASTER_PORT", "29500"},
                             {"TORCHELASTIC_RUN_ID", "none"}};
const Variables kByHand = {{"RANK", "1"}, {"WORLD_SIZE", "2"}};
const Variables kSrun = {{"SLURM_PROCID", "3"},  {"SLURM_NTASKS", "8"},  {"SLURM_LOCALID", "3"},
                         {"SLURM_STEP_ID", "0"}, {"SLURM_JOB_ID", "77"}, {"SLURM_NNODES", "1"}};
const Variables kMpich = {
    {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}};

Variables with(Variables variables, const Variables& changes) {
  for (const auto& [name, value] : changes) variables[name] = value;
  return variables;
}

TEST(Launch, NoVariablesMeanNoLauncher) {
  EXPECT_FALSE(detect({}));
  EXPECT_FALSE(detect({{"PATH", "/bin"}, {"SLURM_JOB_ID", "7"}}));
}

TEST(Launch, HalfOfALaunchersVariablesIsAnErrorThatNamesTheOthers) {
  for (const auto& [set, missing] :
       {std::pair{"RANK", "WORLD_SIZE"}, std::pair{"WORLD_SIZE", "RANK"},
        std::pair{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, std::pair{"PMI_SIZE", "PMI_RANK"},
        std::pair{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}, std::pair{"SLURM_NTASKS", "SLURM_PROCID"}}) {
    try {
      detect({{set, "1"}, {"SLURM_STEP_ID", "0"}});
      ADD_FAILURE() << set;
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), ExitCode::BadArguments);
      EXPECT_EQ(std::string(failure.what()).find(std::string(set) + " is set, but " + missing + " is not"),
                0U)
          << failure.what();
    }
  }
}

TEST(Launch, EmptyVariablesCountAsUnset) {
  EXPECT_FALSE(detect({{"RANK", ""}, {"WORLD_SIZE", ""}}));
  EXPECT_EQ(detect(with(kTorchrun, {{"LOCAL_WORLD_SIZE", ""}, {"OMPI_COMM_WORLD_RANK", ""}}))->ranks, 2);
}

TEST(Launch, OtherLaunchersVariablesMakeHalfASetHarmless) {
  EXPECT_EQ(detect(with(kSrun, {{"WORLD_SIZE", "16"}}))->launcher, "srun");
}

TEST(Launch, RanksComeFromEachLaunchersVariables) {
  const auto expect = [](const Variables& variables, const char* name, int rank, int ranks, int localRank) {
    const auto launch = detect(variables);
    ASSERT_TRUE(launch) << name;
    EXPECT_EQ(launch->launcher, name);
    EXPECT_EQ(launch->rank, rank);
    EXPECT_EQ(launch->ranks, ranks);
    EXPECT_EQ(launch->localRank, localRank);
  };
  expect(kOpenMpi, "Open MPI mpirun", 2, 4, 2);
  expect(kMpich, "MPICH mpirun", 0, 2, 0);
  expect(kTorchrun, "torchrun", 1, 2, 1);
  expect(kByHand, "the environment", 1, 2, 1);
  expect(kSrun, "srun", 3, 8, 3);
}

TEST(Launch, MpirunInsideASlurmJobIsMpirun) {
  Variables both = kSrun;
  both.insert(kOpenMpi.begin(), kOpenMpi.end());
  EXPECT_EQ(detect(both)->launcher, "Open MPI mpirun");
}

TEST(Launch, AShellInsideASlurmJobIsNoRank) {
  Variables batch = kSrun;
  batch.erase("SLURM_STEP_ID");
  EXPECT_FALSE(detect(batch));
  EXPECT_FALSE(detect(with(kSrun, {{"SLURM_STEP_ID", "4294967290"}}))) << "salloc's interactive step";
  batch["SLURM_NTASKS"] = "many";
  EXPECT_FALSE(detect(batch)) << "nobody's business";
}

TEST(Launch, TorchrunIsTheInnerOneWhereMpirunOrSrunStartedIt) {
  const Variables one = {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}};
  EXPECT_EQ(detect(with(kTorchrun, one))->launcher, "torchrun");
  EXPECT_EQ(detect(with(kTorchrun, kSrun))->launcher, "torchrun");
}

TEST(Launch, SrunWithPmiIsOneLauncherWithBothKindsOfVariables) {
  const Variables pmi = with(kSrun, {{"PMI_RANK", "3"}, {"PMI_SIZE", "8"}, {"SLURM_LOCALID", "1"}});
  EXPECT_EQ(detect(pmi)->localRank, 1);
  EXPECT_NE(failureOf(with(pmi, {{"SLURM_NNODES", "2"}})).find("SLURM_NNODES=2"), std::string::npos);
}

TEST(Launch, LaunchersThatDisagreeAreAnErrorThatNamesBoth) {
  for (const auto& [inner, outer] : {std::pair{kOpenMpi, kMpich}, std::pair{kOpenMpi, kByHand},
                                     std::pair{kMpich, kByHand}, std::pair{kByHand, kSrun}}) {
    const std::string text = failureOf(with(inner, outer));
    EXPECT_EQ(text.find("two launchers disagree: "), 0U) << text;
    for (const Variables& one : {inner, outer}) {
      for (const auto& [name, value] : one) {
        const bool isRank = name.ends_with("_RANK") || name == "RANK" || name == "SLURM_PROCID";
        if (!isRank || name.find("LOCAL") != std::string::npos) continue;
        EXPECT_NE(text.find(name + "=" + value), std::string::npos) << text;
        EXPECT_NE(text.find("env -u " + name), std::string::npos) << text;
      }
    }
  }
}

TEST(Launch, LaunchersThatAgreeAreNoError) {
  const Variables same = {{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "3"}};
  EXPECT_EQ(detect(with(kOpenMpi, same))->launcher, "Open MPI mpirun");
  EXPECT_EQ(detect(with(kOpenMpi, same))->localRank, 2);
  EXPECT_NE(failureOf(with(kOpenMpi, with(same, {{"LOCAL_WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}})))
                .find("several hosts (WORLD_SIZE=4, LOCAL_WORLD_SIZE=1)"),
            std::string::npos);
}

TEST(Launch, StepTasksWinOverTheJobsTasks) {
  EXPECT_EQ(detect(with(kSrun, {{"SLURM_STEP_NUM_TASKS", "5"}}))->ranks, 5);
}

TEST(Launch, RanksOnSeveralHostsAreAnErrorThatNamesTheVariables) {
  const auto hosts = [](const Variables& variables) {
    const std::string text = failureOf(variables);
    const size_t at = text.find("several hosts (");
    return at == std::string::npos ? text : text.substr(at + 15, text.find(')') - at - 15);
  };
  EXPECT_EQ(hosts(with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}})),
            "OMPI_COMM_WORLD_SIZE=4, OMPI_COMM_WORLD_LOCAL_SIZE=2");
  EXPECT_EQ(hosts(with(kMpich, {{"MPI_LOCALNRANKS", "1"}})), "PMI_SIZE=2, MPI_LOCALNRANKS=1");
  EXPECT_EQ(hosts(with(kTorchrun, {{"LOCAL_WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}})),
            "WORLD_SIZE=2, LOCAL_WORLD_SIZE=1");
  EXPECT_EQ(hosts(with(kSrun, {{"SLURM_NNODES", "2"}})), "SLURM_NTASKS=8, SLURM_NNODES=2");
}

TEST(Launch, NonsenseIsAnErrorThatNamesVariableValueAndRange) {
  EXPECT_EQ(failureOf(with(kTorchrun, {{"RANK", "two"}})),
            "RANK=two is not valid: must be a number from 0 to 65536");
  EXPECT_EQ(failureOf(with(kOpenMpi, {{"OMPI_COMM_WORLD_SIZE", "0"}})),
            "OMPI_COMM_WORLD_SIZE=0 is not valid: must be a number from 1 to 65536");
  for (const char* value : {"-1", "+1", " 1", "1 ", "1.0", "0x1", "99999999999999999999"}) {
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE"}) {
      const std::string text = failureOf(with(kTorchrun, {{name, value}}));
      EXPECT_EQ(text.find(std::string(name) + "=" + value + " is not valid"), 0U) << text;
    }
  }
}

TEST(Launch, ContradictionsAreErrorsThatNameBothVariables) {
  EXPECT_EQ(failureOf(with(kTorchrun, {{"RANK", "2"}})).find("RANK=2 and WORLD_SIZE=2 contradict"), 0U);
  EXPECT_EQ(failureOf(with(kTorchrun, {{"LOCAL_RANK", "2"}})).find("LOCAL_RANK=2 and LOCAL_WORLD_SIZE=2"),
            0U);
  EXPECT_EQ(failureOf(with(kSrun, {{"SLURM_LOCALID", "8"}})).find("SLURM_LOCALID=8 and SLURM_NTASKS=8"), 0U);
  EXPECT_EQ(failureOf(with(kMpich, {{"MPI_LOCALNRANKS", "3"}})).find("MPI_LOCALNRANKS=3 and PMI_SIZE=2"), 0U);
}

TEST(Launch, TheJobKeyIsCommonToRanksAndDiffersBetweenJobs) {
  for (const auto& [variables, rank, job] :
       {std::tuple{kOpenMpi, "OMPI_COMM_WORLD_RANK", "PMIX_NAMESPACE"},
        std::tuple{kTorchrun, "RANK", "MASTER_PORT"}, std::tuple{kSrun, "SLURM_PROCID", "SLURM_STEP_ID"},
        std::tuple{kMpich, "PMI_RANK", "PMI_PORT"}}) {
    const std::string key = detect(variables)->jobKey;
    EXPECT_EQ(detect(with(variables, {{rank, "1"}}))->jobKey, key) << rank;
    EXPECT_NE(detect(with(variables, {{job, "4711"}}))->jobKey, key) << job;
  }
}

TEST(Launch, MpichsJobsDifferByTheMakerOfTheRanksSockets) {
  int pair[2] = {-1, -1};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const auto key = [](int descriptor) {
    return detect(with(kMpich, {{"PMI_FD", std::to_string(descriptor)}}))->jobKey;
  };
  EXPECT_EQ(key(pair[0]), key(pair[1]));
  EXPECT_NE(key(pair[0]).find("made by " + std::to_string(getpid())), std::string::npos);
  int pipe[2] = {-1, -1};
  ASSERT_EQ(::pipe(pipe), 0);
  for (const int descriptor : {pipe[0], -1, 1 << 20}) EXPECT_EQ(key(descriptor), detect(kMpich)->jobKey);
  for (const int descriptor : {pair[0], pair[1], pipe[0], pipe[1]}) close(descriptor);
}

}  // namespace
}  // namespace topoccl::bench
