// Benches and a user's program, started by real launchers.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "bench/shell.h"

namespace {

using topoccl::bench::contains;
using topoccl::bench::Outcome;
using topoccl::bench::shell;
using topoccl::bench::table;

#define PERF "\"" ALL_REDUCE_PERF "\""
#define EXAMPLE "\"" LAUNCHED "\""

int countOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) count++;
  return count;
}

struct Launcher {
  const char* name;
  const char* program;     // as Debian calls it
  const char* version;     // what `mpirun --version` says of it
  const char* options;     // more ranks than cores
  const char* rootOption;  // where root has to ask
};

void PrintTo(const Launcher& launcher, std::ostream* out) {
  *out << launcher.name;
}

class Launchers : public testing::TestWithParam<Launcher> {
 protected:
  void SetUp() override {
    const Launcher& launcher = GetParam();
    for (const std::string program : {launcher.program, "mpirun"}) {
      const Outcome version = shell(program + " --version");
      if (version.code != 0 || !contains(version.text + version.errors, launcher.version)) continue;
      command_ = program + " " + launcher.options + (geteuid() == 0 ? launcher.rootOption : "");
      return;
    }
    GTEST_SKIP() << "mpirun of " << launcher.name << " is not installed";
  }

  // A launcher that never ends is ended.
  Outcome run(int ranks, const std::string& command, const std::string& before = "") const {
    return shell(before + " timeout 60 " + command_ + " -np " + std::to_string(ranks) + " " + command);
  }

 private:
  std::string command_;
};

INSTANTIATE_TEST_SUITE_P(Mpirun, Launchers,
                         testing::Values(Launcher{"Open MPI", "mpirun.openmpi", "Open MPI", "--oversubscribe",
                                                  " --allow-run-as-root"},
                                         Launcher{"MPICH", "mpirun.mpich", "HYDRA", "", ""}),
                         [](const auto& test) {
                           return std::string(test.param.name) == "MPICH" ? "Mpich" : "OpenMpi";
                         });

void expectTable(const Outcome& run, int ranks) {
  const std::string all = run.text + run.errors;
  EXPECT_EQ(run.code, 0) << all;
  EXPECT_EQ(countOf(run.text, "#  Rank "), ranks) << all;
  const auto rows = table(run.text);
  ASSERT_EQ(rows.size(), 1U) << all;
  EXPECT_EQ(rows[0].wrong[0], "0") << all;
  EXPECT_EQ(rows[0].wrong[1], "0") << all;
}

TEST_P(Launchers, RanksOfABenchMeetAndOneReports) {
  expectTable(run(3, PERF " -b 64 -e 64 -n 2"), 3);
}

TEST_P(Launchers, RanksThroughAShellMeetToo) {
  expectTable(run(2, "sh -c '" PERF " -b 64 -e 64 -n 2; exit $?'"), 2);
}

TEST_P(Launchers, OneRankIsOneRank) {
  expectTable(run(1, PERF " -b 64 -e 64 -n 2"), 1);
}

// Open MPI's mpiruns get a folder each: they fail now and then where two make or remove the same one.
TEST_P(Launchers, JobsAtTheSameTimeStayApart) {
  std::vector<Outcome> outcomes(3);
  std::vector<std::thread> threads;
  for (Outcome& outcome : outcomes) {
    threads.emplace_back([&] {
      const std::string folder = testing::TempDir() + "launchers." + std::to_string(getpid()) + "." +
                                 std::to_string(&outcome - outcomes.data());
      shell("mkdir -p " + folder);
      outcome = run(2, "sh -c 'sleep 0.3; " PERF " -b 64 -e 64 -n 2'", "OMPI_MCA_orte_tmpdir_base=" + folder);
      shell("rm -rf " + folder);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Outcome& outcome : outcomes) expectTable(outcome, 2);
}

TEST_P(Launchers, VariablesOfAnotherLauncherThatDisagreeAreAnError) {
  const Outcome outcome = run(2, "env -u TORCHELASTIC_RUN_ID RANK=0 WORLD_SIZE=1 " PERF);
  EXPECT_NE(outcome.code, 0);
  EXPECT_TRUE(contains(outcome.errors, "the environment says RANK=0 and WORLD_SIZE=1")) << outcome.errors;
}

TEST_P(Launchers, RanksThatAreStartedTwiceAreAnError) {
  const Outcome outcome = run(2, PERF " --ranks 2");
  EXPECT_NE(outcome.code, 0);
  EXPECT_TRUE(contains(outcome.errors, "so --ranks can't start more")) << outcome.errors;
}

TEST_P(Launchers, ARankThatIsKilledEndsTheJob) {
  const Outcome outcome =
      run(3, "sh -c 'case $OMPI_COMM_WORLD_RANK$PMI_RANK in 1) (sleep 1; kill -9 $$) & esac; exec " PERF
             " -b 1M -e 1M -N 0'");
  EXPECT_NE(outcome.code, 0) << outcome.text << outcome.errors;
  EXPECT_NE(outcome.code, 124) << "ran until it was stopped: " << outcome.text << outcome.errors;
}

TEST_P(Launchers, AUsersProgramTakesItsRankFromTheEnvironment) {
  const std::string id = "NCCL_COMM_ID=127.0.0.1:" + std::to_string(20000 + getpid() % 10000);
  const Outcome outcome = run(3, EXAMPLE, id);
  EXPECT_EQ(outcome.code, 0) << outcome.text << outcome.errors;
  EXPECT_EQ(countOf(outcome.text, " of 3: all sums are right"), 3) << outcome.text << outcome.errors;
}

// As docs/launching.md shows it.
TEST(Launched, RanksOfAScriptMeet) {
  const std::string job = "MASTER_PORT=" + std::to_string(20000 + getpid() % 10000);
  expectTable(shell("for rank in 0 1 2; do env -u TORCHELASTIC_RUN_ID RANK=$rank WORLD_SIZE=3 " + job +
                    " " PERF " -b 64 -e 64 -n 2 & done; wait"),
              3);
}

TEST(Launched, AProgramWithoutLauncherOrIdSaysWhatIsMissing) {
  const std::string none = "env -u OMPI_COMM_WORLD_RANK -u PMI_RANK -u RANK -u SLURM_PROCID -u NCCL_COMM_ID ";
  const Outcome noLauncher = shell(none + EXAMPLE);
  EXPECT_EQ(noLauncher.code, 2);
  EXPECT_TRUE(contains(noLauncher.errors, "no launcher's variables are set")) << noLauncher.errors;
  const Outcome half = shell(none + "RANK=1 WORLD_SIZE=two " EXAMPLE);
  EXPECT_EQ(half.code, 2);
  EXPECT_TRUE(contains(half.errors, "WORLD_SIZE=two is not valid")) << half.errors;
  const Outcome noId = shell(none + "RANK=0 WORLD_SIZE=1 " EXAMPLE);
  EXPECT_EQ(noId.code, 2);
  EXPECT_TRUE(contains(noId.errors, "NCCL_COMM_ID is not set")) << noId.errors;
}

}  // namespace
