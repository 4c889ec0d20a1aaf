#include "common/launch.h"

#include <gtest/gtest.h>

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
                             {"MASTER_PORT", "29500"}};
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
        std::pair{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, std::pair{"PMI_SIZE", "PMI_RANK"}}) {
    try {
      detect({{set, "1"}});
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
}

TEST(Launch, StepTasksWinOverTheJobsTasks) {
  EXPECT_EQ(detect(with(kSrun, {{"SLURM_STEP_NUM_TASKS", "5"}}))->ranks, 5);
}

TEST(Launch, RanksOnSeveralHostsAreAClearError) {
  EXPECT_NE(failureOf(with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}})).find("several hosts"),
            std::string::npos);
  EXPECT_NE(failureOf(with(kMpich, {{"MPI_LOCALNRANKS", "1"}})).find("several hosts"), std::string::npos);
  EXPECT_NE(failureOf(with(kTorchrun, {{"LOCAL_WORLD_SIZE", "1"}})).find("several hosts"), std::string::npos);
  EXPECT_NE(failureOf(with(kSrun, {{"SLURM_NNODES", "2"}})).find("2 hosts"), std::string::npos);
}

TEST(Launch, NonsenseIsAnErrorThatNamesTheVariable) {
  EXPECT_NE(failureOf(with(kTorchrun, {{"RANK", "two"}})).find("RANK is \"two\""), std::string::npos);
  EXPECT_NE(failureOf(with(kTorchrun, {{"RANK", "-1"}})).find("RANK"), std::string::npos);
  EXPECT_NE(failureOf(with(kTorchrun, {{"RANK", "2"}})).find("contradicts"), std::string::npos);
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

}  // namespace
}  // namespace topoccl::bench
