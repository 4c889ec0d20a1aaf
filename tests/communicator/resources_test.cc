// What a system may lack or forbid: communicators work without it, or say what they need.
#include "communicator/ranks.h"
#include "communicator/streams.h"
#include "support/child.h"
#include "support/confinements.h"
#include "support/sanitized.h"

namespace topoccl::test {
namespace {

constexpr int kRanks = 3;
constexpr int kCannotConfine = 77;
constexpr const char* kSkips = "exit 77";

struct Confinement {
  const char* name;
  bool (*enter)();
};

std::string nameOf(const testing::TestParamInfo<Confinement>& parameter) {
  return parameter.param.name;
}

// Runs `body` in a process that has entered the confinement.
std::string runConfined(const Confinement& confinement, const std::function<void()>& body) {
  return runChild([&] {
    if (!confinement.enter()) return kCannotConfine;
    body();
    return testing::Test::HasFailure() ? 1 : 0;
  });
}

// Ranks as processes; what each does after an init that gave `result`.
void onConfinedProcesses(const std::function<void(int rank, ncclComm_t comm, ncclResult_t result)>& body) {
  const ncclUniqueId id = newId();
  letRootsFallAsleep();
  std::vector<pid_t> children;
  for (int rank = 0; rank < kRanks; ++rank)
    children.push_back(startChild([&] {
      ncclComm_t comm = nullptr;
      const ncclResult_t result = ncclCommInitRank(&comm, kRanks, id, rank);
      body(rank, comm, result);
      return testing::Test::HasFailure() ? 1 : 0;
    }));
  for (const pid_t child : children) EXPECT_EQ(endOf(child), "");
}

#define SKIP_OR_EXPECT_SUCCESS(end)                                                  \
  const std::string ended = end;                                                     \
  if (ended == kSkips) GTEST_SKIP() << "this system does not let a process do that"; \
  EXPECT_EQ(ended, "")

// ---- what is not needed ----

class NotNeeded : public testing::TestWithParam<Confinement> {};

INSTANTIATE_TEST_SUITE_P(
    Is, NotNeeded,
    testing::Values(Confinement{"LargeSharedMemoryFolder", tinySharedMemory},
                    Confinement{"WritableSharedMemoryFolder", readOnlySharedMemory},
                    Confinement{"Devices", noDevices}, Confinement{"Sys", noSys}, Confinement{"Proc", noProc},
                    Confinement{"WritableRoot", readOnlyRoot}, Confinement{"LockedMemory", noLockedMemory},
                    Confinement{"SecondCore", oneCore}, Confinement{"Getrandom", without<SYS_getrandom>},
                    Confinement{"WaitingForManyWords", without<449>},  // futex_waitv
                    Confinement{"Affinity", without<SYS_sched_getaffinity>},
                    Confinement{"Yield", without<SYS_sched_yield>},
                    Confinement{"Eventfd", without<SYS_eventfd2>}),
    nameOf);

TEST_P(NotNeeded, ByThreads) {
  SKIP_OR_EXPECT_SUCCESS(runConfined(GetParam(), [] {
    const ncclUniqueId id = newId();
    onThreads(kRanks, [&](int rank) {
      const Comm comm(id, kRanks, rank);
      expectSum(comm, kRanks, rank, 10'000);
    });
    const Comms together(2);
    Words first(10, 1), second(10, 1);
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(sum(first, together[0], nullptr), ncclSuccess);
    EXPECT_EQ(sum(second, together[1], nullptr), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << lastError();
    EXPECT_EQ(first, Words(10, 2));
  }));
}

TEST_P(NotNeeded, ByProcesses) {
  SKIP_OR_EXPECT_SUCCESS(runConfined(GetParam(), [] {
    onConfinedProcesses([](int rank, ncclComm_t comm, ncclResult_t result) {
      ASSERT_EQ(result, ncclSuccess) << lastError();
      expectSum(comm, kRanks, rank, 10'000);
      EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess) << lastError();
    });
  }));
}

// ---- what processes need to share memory ----

struct Need {
  Confinement confinement;
  std::vector<std::string> texts;  // of the error
};

class Needed : public testing::TestWithParam<Need> {};

constexpr rlim_t kFileBytes = 1 << 16;

INSTANTIATE_TEST_SUITE_P(
    Is, Needed,
    testing::Values(Need{{"MemoryFiles", without<SYS_memfd_create>}, {"memfd_create", "not implemented"}},
                    Need{{"Seals", denySeals}, {"F_ADD_SEALS", "not permitted"}},
                    Need{{"Allocation", without<SYS_fallocate>}, {"shared memory", "not implemented"}},
                    Need{{"LargeFiles", [] { return limitTo(RLIMIT_FSIZE, kFileBytes); }},
                         {"65536", "ulimit -f", "making a memory file of "}}),
    [](const auto& parameter) { return parameter.param.confinement.name; });

// They learn it, all of them, and live.
TEST_P(Needed, ByProcessesAndTheyAreTold) {
  SKIP_OR_EXPECT_SUCCESS(runConfined(GetParam().confinement, [] {
    onConfinedProcesses([](int, ncclComm_t comm, ncclResult_t result) {
      EXPECT_EQ(result, ncclSystemError) << lastError();
      EXPECT_EQ(comm, nullptr);
      EXPECT_NE(lastError().find("rank 0 has no memory to share"), std::string::npos) << lastError();
      for (const std::string& text : GetParam().texts)
        EXPECT_NE(lastError().find(text), std::string::npos) << lastError() << "\nlacks: " << text;
    });
  }));
}

TEST_P(Needed, ButNotByThreads) {
  SKIP_OR_EXPECT_SUCCESS(runConfined(GetParam().confinement, [] {
    const ncclUniqueId id = newId();
    onThreads(kRanks, [&](int rank) {
      const Comm comm(id, kRanks, rank);
      expectSum(comm, kRanks, rank, 10'000);
    });
  }));
}

// ---- limits ----

// With any number of descriptors a communicator works or says what it lacks; nobody hangs.
TEST(Limits, OfDescriptorsAreNamed) {
  if (kSanitized) GTEST_SKIP() << "sanitizers' checks need descriptors of their own";
  constexpr int kNamed = 10;
  int named = 0, worked = 0;
  for (rlim_t most = 3; most < 32 && worked < 2; ++most) {
    const std::string ended = runChild([&] {
      const Environment environment{{"TOPOCCL_INIT_TIMEOUT", "1"}};
      EXPECT_TRUE(limitTo(RLIMIT_NOFILE, most));
      ncclUniqueId id;
      ncclResult_t result = ncclGetUniqueId(&id);
      ncclComm_t comm = nullptr;
      if (result == ncclSuccess) result = ncclCommInitRank(&comm, 1, id, 0);
      if (result == ncclSuccess) {
        expectSum(comm, 1, 0, 100);
        EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
        return testing::Test::HasFailure() ? 1 : 0;
      }
      const std::string limit = "may have " + std::to_string(most) + " descriptors open (ulimit -n)";
      const bool here = lastError().find(limit) != std::string::npos;
      EXPECT_TRUE(here || lastError().find("descriptors left (ulimit -n)") != std::string::npos)
          << lastError();
      return testing::Test::HasFailure() ? 1 : kNamed;
    });
    worked += ended.empty() ? 1 : 0;
    named += ended == "exit " + std::to_string(kNamed) ? 1 : 0;
    EXPECT_TRUE(ended.empty() || ended == "exit " + std::to_string(kNamed)) << most << ": " << ended;
  }
  EXPECT_GT(named, 0);
  EXPECT_EQ(worked, 2);
}

TEST(Limits, OfThreadsAreNamed) {
  if (kSanitized) GTEST_SKIP() << "sanitizers start threads of their own";
  SKIP_OR_EXPECT_SUCCESS(runConfined({"", noMoreThreads}, [] {
    const auto expectNamed = [](const char* thread) {
      for (const std::string& text : {std::string(thread), std::string("may have 1 threads (ulimit -u)")})
        EXPECT_NE(lastError().find(text), std::string::npos) << lastError();
    };
    ncclUniqueId id;
    EXPECT_EQ(ncclGetUniqueId(&id), ncclSystemError);
    expectNamed("topoccl-root");
    ncclComm_t comms[2] = {};
    EXPECT_EQ(ncclCommInitAll(comms, 2, nullptr), ncclSystemError);
    expectNamed("thread 1 of 2");
    cudaStream_t stream = nullptr;
    EXPECT_EQ(topocclStreamCreate(&stream), ncclSystemError);
    expectNamed("topoccl-stream");
    EXPECT_EQ(ncclCommInitAll(comms, 1, nullptr), ncclSuccess) << lastError();  // takes none
    expectSum(comms[0], 1, 0, 100);
    EXPECT_EQ(ncclCommDestroy(comms[0]), ncclSuccess);
  }));
}

// Room for the program and some more, but not for the memory of many ranks.
TEST(Limits, OfAddressesAreNamed) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need more addresses than any limit leaves";
  const auto enter = [] { return limitTo(RLIMIT_AS, rlim_t{256} << 20); };
  SKIP_OR_EXPECT_SUCCESS(runConfined({"", enter}, [] {
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess) << lastError();
    expectSum(comm, 1, 0, 100);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    ncclComm_t comms[16] = {};
    EXPECT_EQ(ncclCommInitAll(comms, 16, nullptr), ncclSystemError);
    EXPECT_NE(lastError().find("268435456 bytes of addresses (ulimit -v)"), std::string::npos) << lastError();
  }));
}

// Neither the log's end nor a limit on its size may end the program.
TEST(Log, ThatCannotBeWrittenIsNoDeath) {
  for (const bool tooLarge : {false, true}) {
    const std::string ended = runChild([&] {
      int ends[2];
      EXPECT_EQ(::pipe(ends), 0);
      ::close(ends[0]);
      const std::string path = testing::TempDir() + "log-" + std::to_string(::getpid());
      if (tooLarge) {
        ::setenv("NCCL_DEBUG_FILE", path.c_str(), 1);
        EXPECT_TRUE(limitTo(RLIMIT_FSIZE, 1));
      }
      const int standardError = ::dup(STDERR_FILENO);
      ::dup2(ends[1], STDERR_FILENO);
      ::setenv("NCCL_DEBUG", "TRACE", 1);
      const Comms comms(2);
      EXPECT_EQ(ncclCommDestroy(nullptr), ncclInvalidArgument);
      ::dup2(standardError, STDERR_FILENO);
      ::unlink(path.c_str());
      return testing::Test::HasFailure() ? 1 : 0;
    });
    EXPECT_EQ(ended, "") << tooLarge;
  }
}

}  // namespace
}  // namespace topoccl::test
