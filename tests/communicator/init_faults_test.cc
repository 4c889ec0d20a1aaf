// What goes wrong while ranks, as processes, find each other: all that take part learn what it was, with
// ranks and values; and what may happen on any busy machine does no harm.
#include <signal.h>
#include <sys/time.h>

#include <atomic>

#include "communicator/movements.h"
#include "communicator/ranks.h"
#include "communicator/streams.h"
#include "support/child.h"
#include "support/confinements.h"
#include "support/sanitized.h"

namespace topoccl::test {
namespace {

constexpr int kRanks = 3;

int failures() {
  return testing::Test::HasFailure() ? 1 : 0;
}

void expectText(const std::string& part) {
  EXPECT_NE(lastError().find(part), std::string::npos) << lastError() << "\nlacks: " << part;
}

// What a process passes to init.
struct Claim {
  int ranks;
  int rank;
};

// An id of this process, or of the first of those that use it: who ends with its init, and its root with it.
class IdOf {
 public:
  enum Whom { Nobody, First };
  explicit IdOf(Whom whom) : whom_(whom) {
    if (whom == Nobody) shared_->id = newId();
  }
  ncclUniqueId in(int process) {
    if (whom_ == Nobody) return shared_->id;
    if (process == 0) {
      shared_->id = newId();
      shared_->made = true;
    }
    while (!shared_->made) ::usleep(500);
    return shared_->id;
  }

 private:
  struct Shared {
    std::atomic<bool> made{false};
    ncclUniqueId id{};
  };
  Whom whom_;
  SharedValue<Shared> shared_;
};

// One process per claim, all with the same id; each one's init must fail and say `texts`.
void expectToldBy(IdOf::Whom whom, const std::vector<Claim>& claims, const std::vector<std::string>& texts,
                  const std::function<ncclResult_t(size_t process)>& expected) {
  const Environment environment{{"TOPOCCL_INIT_TIMEOUT", "20"}};
  IdOf id(whom);
  onProcesses(static_cast<int>(claims.size()), [&](int index) {
    const Claim& claim = claims[static_cast<size_t>(index)];
    const ncclUniqueId same = id.in(index);
    if (whom == IdOf::First) ::usleep(static_cast<useconds_t>(index * 30'000));
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, claim.ranks, same, claim.rank), expected(static_cast<size_t>(index)))
        << lastError();
    EXPECT_EQ(comm, nullptr);
    for (const std::string& text : texts) expectText(text);
    return failures();
  });
}

void expectTold(const std::vector<Claim>& claims, const std::vector<std::string>& texts,
                const std::function<ncclResult_t(size_t process)>& expected) {
  for (const IdOf::Whom whom : {IdOf::Nobody, IdOf::First}) expectToldBy(whom, claims, texts, expected);
}

TEST(InitFault, ADoubleRankIsToldToAll) {
  expectTold({{3, 0}, {3, 1}, {3, 1}}, {"rank 1 came twice: from host", "and from host"},
             [](size_t) { return ncclInvalidUsage; });
}

TEST(InitFault, ARankOutOfRangeIsToldToAll) {
  expectTold({{3, 0}, {3, 1}, {3, 3}}, {"rank 3", "out of range: there are 3 ranks"},
             [](size_t process) { return process == 2 ? ncclInvalidArgument : ncclInvalidUsage; });
}

TEST(InitFault, DifferentNumbersOfRanksAreToldToAll) {
  expectTold({{3, 0}, {4, 1}, {3, 2}}, {"one of 4", "one of 3"}, [](size_t) { return ncclInvalidUsage; });
}

TEST(InitFault, ARankWithABadTableIsToldToAll) {
  for (const int wrong : {0, 1}) {
    IdOf id(IdOf::First);
    onProcesses(kRanks, [&](int rank) {
      const ncclUniqueId same = id.in(rank);
      if (rank == wrong) ::setenv("TOPOCCL_RANGE_TABLE", "no such table", 1);
      ncclComm_t comm = nullptr;
      EXPECT_EQ(ncclCommInitRank(&comm, kRanks, same, rank),
                rank == wrong ? ncclInvalidArgument : ncclRemoteError)
          << lastError();
      expectText("no such table");
      if (rank != wrong) expectText("rank " + std::to_string(wrong));
      return failures();
    });
  }
}

// Who has joined is told by its connection, who comes later by nobody.
TEST(InitFault, TheDeathOfTheRootsProcessIsToldToAll) {
  const Environment environment{{"TOPOCCL_INIT_TIMEOUT", "100"}};
  for (const int late : {0, 100'000}) {
    IdOf id(IdOf::First);
    onProcesses(
        kRanks,
        [&](int rank) {
          const ncclUniqueId same = id.in(rank);
          if (rank == 0) {
            ::usleep(50'000);
            ::kill(::getpid(), SIGKILL);
          }
          ::usleep(static_cast<useconds_t>(late * rank));
          ncclComm_t comm = nullptr;
          EXPECT_EQ(ncclCommInitRank(&comm, kRanks, same, rank), ncclRemoteError);
          expectText("the process that made the unique id");
          return failures();
        },
        [](int rank, int status) {
          return rank == 0 ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0;
        });
  }
}

TEST(InitFault, DifferentSettingsAreToldToAll) {
  struct Setting {
    std::string name, first, second;
  };
  for (const Setting& setting : {Setting{"NCCL_ALGO", " unset", "ring"},
                                 {"NCCL_PROTO", " unset", "LL"},
                                 {"NCCL_BUFFSIZE", "=4194304", "5000"},
                                 {"TOPOCCL_SLOTS", "=0", "2"}})
    // The first rank's process may be the root's, and ends as soon as it knows.
    for (const IdOf::Whom whom : {IdOf::Nobody, IdOf::First, IdOf::First, IdOf::First, IdOf::First}) {
      IdOf id(whom);
      onProcesses(2, [&](int rank) {
        const ncclUniqueId same = id.in(rank);
        if (rank == 1) ::setenv(setting.name.c_str(), setting.second.c_str(), 1);
        ncclComm_t comm = nullptr;
        EXPECT_EQ(ncclCommInitRank(&comm, 2, same, rank), ncclInvalidUsage);
        expectText("settings that must be equal on all ranks differ: rank 0 has " + setting.name +
                   setting.first + ", rank 1 has " + setting.name + "=" + setting.second);
        return failures();
      });
    }
}

TEST(InitFault, AMissingRankIsNamed) {
  const Environment environment{{"TOPOCCL_INIT_TIMEOUT", "0.5"}};
  const ncclUniqueId id = newId();
  onProcesses(2, [&](int rank) {
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, kRanks, id, rank), ncclRemoteError);
    expectText("rank 2 of 3 did not join within 0.");
    return failures();
  });
}

// ---- ids ----

TEST(InitFault, BytesThatAreNoIdAreRefused) {
  for (const int fill : {0, 0xff, 0x78}) {
    ncclUniqueId id;
    std::memset(&id, fill, sizeof(id));
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, 2, id, 0), ncclInvalidArgument) << lastError();
    EXPECT_EQ(comm, nullptr);
  }
}

TEST(InitFault, AnIdOfAProcessThatIsGoneIsSaidToBe) {
  SharedValue<ncclUniqueId> id;
  ASSERT_EQ(runChild([&] {
              *id = newId();
              return failures();
            }),
            "");
  const Environment environment{{"TOPOCCL_INIT_TIMEOUT", "0.3"}};
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRank(&comm, 2, *id, 0), ncclRemoteError);
  expectText("could not reach the root");
  expectText("is the process alive that made the unique id, and the id from this run?");
}

TEST(InitFault, AnIdThatIsUsedTwiceHarmsNobody) {
  const ncclUniqueId id = newId();
  SharedValue<std::atomic<int>> ready, refused;
  onProcesses(4, [&](int process) {
    const int rank = process % 2;
    if (process >= 2)
      while (*ready < 2) ::usleep(1000);
    ncclComm_t comm = nullptr;
    const ncclResult_t result = ncclCommInitRank(&comm, 2, id, rank);
    if (process >= 2) {
      EXPECT_EQ(result, ncclInvalidUsage) << lastError();
      expectText("the id was used before: make a new one");
      ++*refused;
      return failures();
    }
    EXPECT_EQ(result, ncclSuccess) << lastError();
    ++*ready;
    while (*refused < 2) ::usleep(1000);
    expectSum(comm, 2, rank, 1000);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess) << lastError();
    return failures();
  });
}

// ---- a rank that can't ----

struct Obstacle {
  const char* name;
  bool (*enter)();
  const char* text;
};

class Unable : public testing::TestWithParam<Obstacle> {};

INSTANTIATE_TEST_SUITE_P(
    To, Unable,
    testing::Values(Obstacle{"receive_memory", without<SYS_recvmsg>, "getting shared memory from rank 0"},
                    Obstacle{"map_memory", [] { return limitTo(RLIMIT_AS, rlim_t{100} << 20); },
                             "bytes of memory"}),
    [](const auto& parameter) { return parameter.param.name; });

// All learn it: the rank itself what it lacks, the others who.
TEST_P(Unable, IsToldToAll) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need more addresses, and calls of their own";
  for (int victim = 1; victim < kRanks; ++victim) {
    const Environment environment{{"TOPOCCL_INIT_TIMEOUT", "30"}};
    const ncclUniqueId id = newId();
    onProcesses(kRanks, [&](int rank) {
      if (rank == victim && !GetParam().enter()) return 1;
      ncclComm_t comm = nullptr;
      EXPECT_EQ(ncclCommInitRank(&comm, kRanks, id, rank), rank == victim ? ncclSystemError : ncclRemoteError)
          << lastError();
      expectText(rank == victim ? GetParam().text : "rank " + std::to_string(victim));
      return failures();
    });
  }
}

// A root that can't take everybody says so to those that it has.
TEST(InitFault, ARootWithoutDescriptorsSaysSo) {
  if (kSanitized) GTEST_SKIP() << "sanitizers' checks need descriptors of their own";
  const Environment environment{{"TOPOCCL_INIT_TIMEOUT", "1.5"}};
  SharedValue<ncclUniqueId> id;
  SharedValue<std::atomic<bool>> made;
  SharedValue<std::atomic<int>> named, asked;
  onProcesses(9, [&](int process) {
    const int rank = process - 1;
    if (rank < 0) {  // lives on as the root's process
      *id = newId();
      EXPECT_TRUE(limitTo(RLIMIT_NOFILE, 12));
      *made = true;
      ::sleep(3);
      return failures();
    }
    while (!*made) ::usleep(1000);
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, 8, *id, rank), ncclRemoteError) << lastError();
    *named += lastError().find("may have 12 descriptors open (ulimit -n)") != std::string::npos ? 1 : 0;
    *asked += lastError().find("descriptors left (ulimit -n)?") != std::string::npos ? 1 : 0;
    return failures();
  });
  EXPECT_GT(*named, 0);
  EXPECT_GT(*asked, 0);
  EXPECT_EQ(*named + *asked, 8);
}

// ---- deaths ----

// At any moment of init or after it: the others learn who it was.
TEST(InitFault, ADeathIsToldToAllThatLive) {
  const Environment environment{{"TOPOCCL_INIT_TIMEOUT", "2"}};
  const bool reduced = std::getenv("TOPOCCL_TEST_REDUCED") != nullptr;
  const std::vector<int> delays =
      reduced ? std::vector<int>{1, 6} : std::vector<int>{0, 1, 2, 3, 4, 6, 9, 14};
  for (const int delay : delays)
    for (int victim = 0; victim < kRanks; ++victim) {
      const ncclUniqueId id = newId();
      letRootsFallAsleep();
      SharedValue<std::atomic<int>> begun;
      std::vector<pid_t> children;
      for (int rank = 0; rank < kRanks; ++rank)
        children.push_back(startChild([&] {
          ++*begun;
          ncclComm_t comm = nullptr;
          ncclResult_t result = ncclCommInitRank(&comm, kRanks, id, rank);
          std::vector<float> data(100);
          while (result == ncclSuccess)
            result = ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclSum, comm, nullptr);
          EXPECT_EQ(result, ncclRemoteError) << lastError();
          expectText("rank " + std::to_string(victim));
          return failures();
        }));
      while (*begun < kRanks) ::usleep(50);
      ::usleep(static_cast<useconds_t>(delay * 1000));
      ::kill(children[static_cast<size_t>(victim)], SIGKILL);
      for (int rank = 0; rank < kRanks; ++rank)
        EXPECT_EQ(endOf(children[static_cast<size_t>(rank)], std::chrono::seconds(20)),
                  rank == victim ? "signal 9" : "")
            << "rank " << rank << " at " << delay << " ms";
    }
}

// ---- what any machine does ----

TEST(InitFault, AStormOfSignalsIsNone) {
  const Environment environment{{"TOPOCCL_INIT_TIMEOUT", "60"}};
  const int rounds = std::getenv("TOPOCCL_TEST_REDUCED") != nullptr ? 2 : 10;
  std::vector<ncclUniqueId> ids;
  for (int round = 0; round < rounds; ++round) ids.push_back(newId());
  onProcesses(kRanks, [&](int rank) {
    struct sigaction action {};
    action.sa_handler = [](int) {};  // without SA_RESTART
    EXPECT_EQ(::sigaction(SIGALRM, &action, nullptr), 0);
    const itimerval often{{0, 1000}, {0, 1000}};
    EXPECT_EQ(::setitimer(ITIMER_REAL, &often, nullptr), 0);
    for (const ncclUniqueId& id : ids) {
      const Comm comm(id, kRanks, rank);
      for (const Movement movement : kMovements)
        for (const size_t count : {size_t{1}, size_t{20'000}}) {
          MovementCall call(movement, comm, kRanks, rank, hasRoot(movement) ? 1 : -1, count, false, 1, 0);
          EXPECT_EQ(call.run(nullptr), ncclSuccess) << lastError();
          EXPECT_EQ(call.flaw(), "");
        }
      ncclComm_t part = nullptr;
      EXPECT_EQ(ncclCommSplit(comm, 0, 0, &part, nullptr), ncclSuccess) << lastError();
      EXPECT_EQ(ncclCommDestroy(part), ncclSuccess) << lastError();
    }
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    return failures();
  });
}

// Rank 0 listens only when the others have been refused many times.
TEST(InitFault, ALateRootIsWaitedFor) {
  const std::string address = "127.0.0.1:" + std::to_string(20'000 + ::getpid() % 10'000);
  const Environment environment{{"NCCL_COMM_ID", address}, {"TOPOCCL_INIT_TIMEOUT", "60"}};
  onProcesses(kRanks, [&](int rank) {
    if (rank == 0) ::usleep(300'000);
    const Comm comm(newId(), kRanks, rank);
    expectSum(comm, kRanks, rank, 1000);
    return failures();
  });
}

TEST(InitFault, LateRanksAreWaitedFor) {
  const ncclUniqueId id = newId();
  onProcesses(kRanks, [&](int rank) {
    ::usleep(static_cast<useconds_t>(rank) * 200'000);
    const Comm comm(id, kRanks, rank);
    expectSum(comm, kRanks, rank, 1000);
    return failures();
  });
}

// Many ranks, and a system that lets hardly any wait to be accepted.
TEST(InitFault, AShortQueueOfConnectionsIsEnough) {
  const std::string ended = runChild([] {
    if (!ownNetwork(/*queue=*/1)) return 77;
    constexpr int kMany = 16;
    const ncclUniqueId id = newId();
    onProcesses(kMany, [&](int rank) {
      const Comm comm(id, kMany, rank);
      expectSum(comm, kMany, rank, 100);
      return failures();
    });
    return failures();
  });
  if (ended == "exit 77") GTEST_SKIP() << "only root may have a network of its own";
  EXPECT_EQ(ended, "");
}

}  // namespace
}  // namespace topoccl::test
