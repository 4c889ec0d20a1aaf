// all_reduce_perf as a program: what it prints and how it ends.
#include <gtest/gtest.h>
#include <regex.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "bench/shell.h"

namespace {

using topoccl::bench::contains;
using topoccl::bench::Outcome;
using topoccl::bench::shell;
using topoccl::bench::table;
using topoccl::bench::TableRow;

// The program as a word of a shell command: its path may hold spaces.
#define PERF_QUOTED "\"" ALL_REDUCE_PERF "\""

// An extended regular expression somewhere in the text.
bool matches(const std::string& text, const char* pattern) {
  regex_t expression;
  if (regcomp(&expression, pattern, REG_EXTENDED | REG_NOSUB) != 0) return false;
  const bool isMatch = regexec(&expression, text.c_str(), 0, nullptr, 0) == 0;
  regfree(&expression);
  return isMatch;
}

Outcome perf(const std::string& arguments, const std::string& environment = "") {
  return shell("env " + environment + " " PERF_QUOTED " -n 2 " + arguments);
}

int countOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) count++;
  return count;
}

class Ranks : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(AllReducePerf, Ranks,
                         testing::Values("--ranks 1", "--ranks 2", "--ranks 3", "-t 3", "-g 3",
                                         "--ranks 2 -t 2", "-t 2 -g 2", "-t 2 -p 1", "--ranks 2 -g 2",
                                         "--ranks 2 --bind core"));

TEST_P(Ranks, EveryElementIsRight) {
  const Outcome run = perf(std::string(GetParam()) + " -b 4 -e 64K -f 16 -c 2");
  EXPECT_EQ(run.code, 0) << run.text << run.errors;
  const std::vector<TableRow> rows = table(run.text);
  EXPECT_EQ(rows.size(), 4U) << run.text << run.errors;
  for (const TableRow& row : rows) {
    EXPECT_EQ(row.wrong[0], "0");
    EXPECT_EQ(row.wrong[1], "0");
  }
  EXPECT_TRUE(contains(run.text, "# Out of bounds values : 0 OK\n"));
}

TEST(AllReducePerf, StartsOneProcessPerDeviceByItself) {
  const Outcome run = perf("-b 8 -e 8");
  EXPECT_EQ(run.code, 0) << run.text << run.errors;
  EXPECT_EQ(countOf(run.text, "#  Rank "), std::atoi(shell("nproc").text.c_str())) << run.text << run.errors;
}

TEST(AllReducePerf, NamesOnlyDevicesThereAre) {
  const int devices = std::atoi(shell("nproc").text.c_str());
  for (const std::string way : {"--ranks ", "-t ", "-g "}) {
    const Outcome run = perf(way + std::to_string(devices + 1) + " -b 8 -e 8 -c 0");
    EXPECT_EQ(countOf(run.text, " device  0 "), 2) << run.text << run.errors;
    EXPECT_EQ(countOf(run.text, " device " + std::string(devices < 10 ? " " : "") + std::to_string(devices)),
              0)
        << run.text << run.errors;
  }
}

TEST(AllReducePerf, AnInjectedFaultIsFoundByEveryWayOfRunning) {
  for (const char* ranks : {"--ranks 2", "-t 2", "-g 2"}) {
    const Outcome run = perf(std::string(ranks) + " -b 1K -e 1K", "TOPOCCL_BENCH_INJECT=1:200:0");
    EXPECT_EQ(run.code, 7) << run.text << run.errors;
    const std::vector<TableRow> rows = table(run.text);
    ASSERT_EQ(rows.size(), 1U) << run.text << run.errors;
    EXPECT_EQ(rows[0].wrong[0], "1");
    EXPECT_EQ(rows[0].wrong[1], "1");
    EXPECT_TRUE(contains(run.text, "# Out of bounds values : 2 FAILED\n")) << run.text << run.errors;
  }
}

TEST(AllReducePerf, AWriteBeyondTheResultIsFound) {
  const Outcome run = perf("--ranks 2 -b 1K -e 1K", "TOPOCCL_BENCH_INJECT=1:256:7");
  EXPECT_EQ(run.code, 7) << run.text << run.errors;
  EXPECT_TRUE(
      contains(run.errors, "rank 1, 1024 bytes: 1 bytes written out of bounds, 0 input elements changed"));
  EXPECT_TRUE(contains(run.text, "# Out of bounds values : 2 FAILED\n"));
  EXPECT_EQ(table(run.text).at(0).wrong[0], "0");
}

TEST(AllReducePerf, MisalignedBuffersAreRightToo) {
  for (const char* type : {"float", "double", "bfloat16"}) {
    EXPECT_EQ(perf(std::string("--ranks 2 -b 40 -e 64K -f 7 -u 3 -d ") + type).code, 0) << type;
  }
}

TEST(AllReducePerf, BitsAreComparedEvenUnchecked) {
  const std::string fault = "TOPOCCL_BENCH_INJECT=0:0:3";
  EXPECT_EQ(perf("--ranks 2 -b 64 -e 64 -c 0", fault).code, 0) << "nothing looks";
  const Outcome run = perf("--ranks 2 -b 64 -e 64 -c 0 --bits", fault);
  EXPECT_EQ(run.code, 7) << run.text << run.errors;
  EXPECT_TRUE(contains(run.errors, "differ in bits"));
  EXPECT_EQ(table(run.text).at(0).wrong[0], "N/A");
  EXPECT_EQ(perf("--ranks 2 -b 64 -e 64 -c 0 --bits").code, 0);
}

TEST(AllReducePerf, AReportThatCannotBeWrittenIsNoSuccess) {
  const Outcome full = shell("env " PERF_QUOTED " --ranks 2 -b 8 -e 8 >/dev/full");
  EXPECT_EQ(full.code, 1) << full.errors;
  EXPECT_TRUE(contains(full.errors, "could not be written to standard output")) << full.errors;
  for (const char* ranks : {"--ranks 2", "-t 2"}) {
    const Outcome run = perf(std::string(ranks) + " -b 8 -e 8 -J /dev/nowhere/report.json");
    EXPECT_EQ(run.code, 255) << run.text << run.errors;
    EXPECT_TRUE(contains(run.errors, "cannot create /dev/nowhere/report.json: No such file")) << run.errors;
  }
}

TEST(AllReducePerf, VariablesThatAreNoNumbersAreRefused) {
  for (const char* variable :
       {"NCCL_TESTS_MIN_BW=much", "NCCL_TESTS_MIN_BW=", "NCCL_TESTS_DEVICE=1x", "TOPOCCL_BENCH_INJECT=1:2",
        "TOPOCCL_BENCH_INJECT=1:2:3:4", "TOPOCCL_BENCH_INJECT=a:0:0", "TOPOCCL_BENCH_INJECT=-1:0:0"}) {
    const Outcome run = perf("--ranks 2 -b 8 -e 8", variable);
    EXPECT_EQ(run.code, 255) << variable << run.text << run.errors;
    const std::string text = variable;
    EXPECT_TRUE(contains(run.errors, text.substr(0, text.find('=')) + "=\"")) << variable << run.errors;
  }
}

TEST(AllReducePerf, TooLittleBandwidthFails) {
  const Outcome run = perf("--ranks 2 -b 8 -e 8", "NCCL_TESTS_MIN_BW=1000000");
  EXPECT_EQ(run.code, 7) << run.text << run.errors;
  EXPECT_TRUE(matches(run.text, "# Avg bus bandwidth    : [0-9.e+-]+ FAILED"));
}

TEST(AllReducePerf, ExplainNamesTheAlgorithm) {
  const Outcome run = perf("--ranks 2 -b 8 -e 8 --explain");
  EXPECT_EQ(run.code, 0) << run.text << run.errors;
  EXPECT_TRUE(matches(run.text, "algorithm +protocol +transport +channels\n")) << run.text << run.errors;
  EXPECT_TRUE(matches(run.text, " 0 +[a-z][^ ]+ +(bulk|packet) +[^ ]+ +[1-9][0-9]*\n"))
      << run.text << run.errors;
}

TEST(AllReducePerf, AllRunsWhatTheLibrarySupports) {
  const Outcome run = perf("--ranks 2 -b 64 -e 64 -d all -o all");
  EXPECT_EQ(run.code, 0) << run.text << run.errors;
  EXPECT_EQ(run.errors, "") << "nothing is left out";
  EXPECT_EQ(table(run.text).size(), 12U * 6) << run.text;
}

TEST(AllReducePerf, MistakesEndWithTheirCode) {
  EXPECT_EQ(perf("-b 9 -e 8").code, 255);
  EXPECT_EQ(perf("-o plus").code, 255);
  EXPECT_EQ(perf("--device cuda").code, 5);
  EXPECT_EQ(perf("--help").code, 0);
  const Outcome tooMany = perf("--ranks 2 -t 4096 -g 4096");
  EXPECT_EQ(tooMany.code, 255);
  EXPECT_TRUE(contains(tooMany.errors, "2 processes x 4096 threads x 4096 devices")) << tooMany.errors;
  for (const char* value : {"0", "-1", "1e300", "nan", "soon"}) {
    const Outcome run = perf("", std::string("RANK=0 WORLD_SIZE=2 TOPOCCL_INIT_TIMEOUT=") + value);
    EXPECT_EQ(run.code, 255) << value;
    EXPECT_TRUE(contains(run.errors, "must be a number from 0.001 to 604800")) << run.errors;
  }
}

TEST(AllReducePerf, RunsUnderTorchrunsVariables) {
  const std::string common =
      " WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 GROUP_RANK=0 GROUP_WORLD_SIZE=1 TORCHELASTIC_RUN_ID=none "
      "TORCHELASTIC_RESTART_COUNT=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=" +
      std::to_string(20000 + getpid() % 20000);
  Outcome other{};
  std::thread second([&] { other = perf("-b 64 -e 64", common + " RANK=1 LOCAL_RANK=1"); });
  const Outcome first = perf("-b 64 -e 64", common + " RANK=0 LOCAL_RANK=0");
  second.join();
  EXPECT_EQ(first.code, 0) << first.text;
  EXPECT_EQ(other.code, 0) << other.text;
  EXPECT_EQ(table(first.text).size(), 1U) << first.text;
  EXPECT_EQ(other.text + other.errors, "") << "only rank 0 reports";
  const Outcome both = perf("--ranks 2", common + " RANK=0 LOCAL_RANK=0");
  EXPECT_EQ(both.code, 255) << both.text;
}

// A run that goes on until it is told to end, as the leader of its own process group.
class Endless {
 public:
  Endless() {
    int fds[2];
    if (pipe(fds) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      dup2(fds[1], 1);
      dup2(fds[1], 2);
      close(fds[0]);
      execl(ALL_REDUCE_PERF, ALL_REDUCE_PERF, "--ranks", "3", "-b", "8", "-e", "8", "-N", "0", nullptr);
      _exit(127);
    }
    close(fds[1]);
    out_ = fdopen(fds[0], "r");
    readUntilTable();
  }
  ~Endless() { std::fclose(out_); }

  pid_t pid() const { return pid_; }
  const std::vector<pid_t>& ranks() const { return ranks_; }

  int end() {
    std::string rest;
    char line[512];
    while (std::fgets(line, sizeof line, out_) != nullptr) {
      if (line[0] == '#' || std::string(line).find("# error") != std::string::npos) errors_ += line;
    }
    int status = 0;
    waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  const std::string& errors() const { return errors_; }

 private:
  // Until the first row, by when all ranks are connected and working.
  void readUntilTable() {
    char line[512];
    while (std::fgets(line, sizeof line, out_) != nullptr && line[0] == '#') {
      int rank = 0, group = 0, pid = 0;
      if (std::sscanf(line, "#  Rank %d Group %d Pid %d", &rank, &group, &pid) == 3) ranks_.push_back(pid);
    }
  }

  pid_t pid_;
  std::FILE* out_ = nullptr;
  std::vector<pid_t> ranks_;
  std::string errors_;
};

// Gone, or dead and not yet collected by whoever inherited it.
bool isDead(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(file, text)) return true;
  return text.substr(text.rfind(')') + 2, 1) == "Z";
}

bool diesSoon(pid_t pid) {
  for (int i = 0; i < 2000; i++) {
    if (isDead(pid)) return true;
    usleep(10000);
  }
  return false;
}

// The others notice and end with errors of their own: code 3 said that the library had failed.
TEST(AllReducePerf, ADeadRankEndsTheOthersIsNamedAndDecidesTheCode) {
  for (size_t dead = 0; dead < 3; dead++) {
    Endless run;
    ASSERT_EQ(run.ranks().size(), 3U);
    kill(run.ranks()[dead], SIGKILL);
    EXPECT_EQ(run.end(), 1) << run.errors();
    const std::string name =
        "rank " + std::to_string(dead) + " (pid " + std::to_string(run.ranks()[dead]) + ")";
    EXPECT_TRUE(contains(run.errors(), name + " was killed by signal 9")) << run.errors();
    for (const pid_t rank : run.ranks()) EXPECT_TRUE(isDead(rank));
  }
}

TEST(AllReducePerf, NoRankOutlivesAKilledParent) {
  Endless run;
  ASSERT_EQ(run.ranks().size(), 3U);
  kill(run.pid(), SIGKILL);
  for (const pid_t rank : run.ranks()) EXPECT_TRUE(diesSoon(rank));
  EXPECT_EQ(run.end(), 128 + SIGKILL);
}

TEST(AllReducePerf, ASignalToTheParentReachesTheRanks) {
  Endless run;
  kill(run.pid(), SIGTERM);
  EXPECT_EQ(run.end(), 128 + SIGTERM);
  for (const pid_t rank : run.ranks()) EXPECT_TRUE(isDead(rank));
}

TEST(AllReducePerf, AStuckRankRunsIntoTheTimeout) {
  const Outcome run = shell("sh -c '" PERF_QUOTED
                            " --ranks 2 -b 8 -e 8 -N 0 -T 1 & parent=$!; sleep 0.5; "
                            "kill -STOP $(pgrep -n -P $parent); wait $parent'");
  EXPECT_EQ(run.code, 4) << run.text.substr(0, 2000);
  EXPECT_TRUE(contains(run.errors, "Test timeout (1s)"));
}

}  // namespace
