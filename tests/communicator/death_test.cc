// Ranks that are killed, with and without a root that could tell; what the others can still do.
#include <signal.h>

#include <numeric>

#include "communicator/ranks.h"

namespace topoccl::test {
namespace {

using namespace std::chrono_literals;

std::string lastError() {
  return ncclGetLastError(nullptr);
}

bool names(const std::string& text, int rank) {
  return text.find("rank " + std::to_string(rank)) != std::string::npos;
}

ncclResult_t sum(ncclComm_t comm, size_t count) {
  std::vector<float> in(count, 1), out(count);
  const ncclResult_t result = ncclAllReduce(in.data(), out.data(), count, ncclFloat, ncclSum, comm, nullptr);
  int ranks = 0;
  if (result != ncclSuccess) return result;
  EXPECT_EQ(ncclCommCount(comm, &ranks), ncclSuccess);
  for (const float value : out) EXPECT_EQ(value, static_cast<float>(ranks));
  return result;
}

ncclResult_t awaitState(ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  for (const auto end = std::chrono::steady_clock::now() + 60s;
       state == ncclSuccess && std::chrono::steady_clock::now() < end; std::this_thread::sleep_for(2ms))
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
  return state;
}

ncclComm_t joined(const ncclUniqueId& id, int ranks, int rank) {
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRank(&comm, ranks, id, rank), ncclSuccess) << lastError();
  return comm;
}

ncclResult_t shrink(ncclComm_t comm, std::vector<int> excluded, ncclComm_t* next,
                    int flags = NCCL_SHRINK_ABORT) {
  return ncclCommShrink(comm, excluded.data(), static_cast<int>(excluded.size()), next, nullptr, flags);
}

// Where the root lives: with a rank, or with a process that is none.
enum class Root { WithRank0, Elsewhere };

struct Deadly {
  int victim;
  const char* when;
  Root root;
};

std::ostream& operator<<(std::ostream& out, const Deadly& how) {
  return out << "rank_" << how.victim << '_' << how.when
             << (how.root == Root::WithRank0 ? "_root_with_rank_0" : "");
}

class Death : public testing::TestWithParam<Deadly> {};

constexpr int kRanks = 3;

// Shares an id that rank 0 makes.
struct Shared {
  std::atomic<bool> made{false};
  ncclUniqueId id{};
  std::atomic<int> arrived{0};
  std::atomic<int> told{0};
};

ncclUniqueId idFor(Shared& shared, Root root, int rank) {
  if (root == Root::WithRank0 && rank == 0) {
    shared.id = newId();
    shared.made = true;
  }
  while (!shared.made) ::usleep(500);
  return shared.id;
}

// The survivors are told who died, and go on without it.
TEST_P(Death, IsToldToAllWhoGoOnWithoutIt) {
  const auto [victim, when, root] = GetParam();
  const std::string moment = when;
  SharedValue<Shared> shared;
  if (root == Root::Elsewhere) {
    shared->id = newId();
    shared->made = true;
  }
  const auto body = [&, victim = victim, root = root](int rank) {
    const ncclComm_t comm = joined(idFor(*shared, root, rank), kRanks, rank);
    EXPECT_EQ(sum(comm, 1000), ncclSuccess) << lastError();
    ++shared->arrived;
    while (shared->arrived < kRanks) ::usleep(200);
    if (rank == victim) {
      if (moment == "inside_a_call") {
        std::thread killer([] {
          std::this_thread::sleep_for(20ms);
          ::kill(::getpid(), SIGKILL);
        });
        while (sum(comm, 3'000'000) == ncclSuccess) {
        }
      }
      ::kill(::getpid(), SIGKILL);
    }
    ncclResult_t result = ncclSuccess;
    if (moment == "between_calls")
      result = awaitState(comm);
    else
      while (result == ncclSuccess) result = sum(comm, 3'000'000);
    EXPECT_EQ(result, ncclRemoteError) << lastError();
    EXPECT_EQ(sum(comm, 10), ncclRemoteError);
    EXPECT_TRUE(names(lastError(), victim)) << "rank " << rank << ": " << lastError();
    ncclComm_t next = nullptr;
    EXPECT_EQ(shrink(comm, {victim}, &next, NCCL_SHRINK_DEFAULT), ncclRemoteError) << lastError();
    EXPECT_EQ(shrink(comm, {victim}, &next), ncclSuccess) << lastError();
    if (next == nullptr) return 1;
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    EXPECT_EQ(sum(next, 1000), ncclSuccess) << lastError();
    EXPECT_EQ(ncclCommDestroy(next), ncclSuccess);
    return 0;
  };
  onProcesses(kRanks, body, [&, victim = victim](int rank, int status) {
    return rank == victim ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0;
  });
}

std::vector<Deadly> deaths() {
  std::vector<Deadly> all;
  for (int victim = 0; victim < kRanks; ++victim)
    for (const char* when : {"before_a_call", "inside_a_call", "between_calls"})
      for (const Root root : {Root::WithRank0, Root::Elsewhere}) all.push_back({victim, when, root});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Moments, Death, testing::ValuesIn(deaths()), testing::PrintToStringParamName());

// Rank 0 has left, and its process, in which the root was: nobody can tell of rank 1's death.
TEST(Death, AfterTheRootHasGoneIsNoticedAllTheSame) {
  SharedValue<Shared> shared;
  onProcesses(
      kRanks,
      [&](int rank) {
        const ncclComm_t comm = joined(idFor(*shared, Root::WithRank0, rank), kRanks, rank);
        EXPECT_EQ(sum(comm, 10), ncclSuccess) << lastError();
        if (rank == 0) {
          EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
          ++shared->told;
          return 0;
        }
        while (shared->told == 0) ::usleep(500);
        ::usleep(200'000);  // until its process is gone, most likely
        if (rank == 1) ::kill(::getpid(), SIGKILL);
        float value = 0;
        EXPECT_EQ(ncclRecv(&value, 1, ncclFloat, 1, comm, nullptr), ncclRemoteError) << lastError();
        EXPECT_TRUE(names(lastError(), 1)) << lastError();
        EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
        return 0;
      },
      [&](int rank, int status) {
        return rank == 1 ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0;
      });
}

TEST(Death, IsNotWhatStoppingIs) {
  const ncclUniqueId id = newId();
  SharedValue<std::atomic<pid_t>> stopped;
  std::thread waker([&] {
    while (*stopped == 0) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(1500ms);
    ::kill(*stopped, SIGCONT);
  });
  onProcesses(2, [&](int rank) {
    const ncclComm_t comm = joined(id, 2, rank);
    if (rank == 1) {
      *stopped = ::getpid();
      ::raise(SIGSTOP);
    }
    EXPECT_EQ(sum(comm, 1000), ncclSuccess) << lastError();
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    return 0;
  });
  waker.join();
}

// Abort needs nobody: all others are stopped.
TEST(Abort, NeedsNoPeer) {
  const ncclUniqueId id = newId();
  SharedValue<Shared> shared;
  SharedValue<std::array<std::atomic<pid_t>, kRanks>> pids;
  onProcesses(
      kRanks,
      [&](int rank) {
        const ncclComm_t comm = joined(id, kRanks, rank);
        EXPECT_EQ(sum(comm, 10), ncclSuccess) << lastError();
        (*pids)[static_cast<size_t>(rank)] = ::getpid();
        ++shared->arrived;
        while (rank != 0) ::pause();
        while (shared->arrived < kRanks) ::usleep(500);
        for (size_t peer = 1; peer < kRanks; ++peer) ::kill((*pids)[peer], SIGSTOP);
        std::thread caller([&] { EXPECT_EQ(sum(comm, 1000), ncclInvalidUsage) << lastError(); });
        std::this_thread::sleep_for(50ms);
        EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
        caller.join();
        for (size_t peer = 1; peer < kRanks; ++peer) ::kill((*pids)[peer], SIGKILL);
        return 0;
      },
      [&](int rank, int status) {
        return rank != 0 ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0;
      });
}

// ---- shrink ----

TEST(Shrink, GoesDownToOneRank) {
  constexpr int kMany = 5;
  const ncclUniqueId id = newId();
  onThreads(kMany, [&](int rank) {
    ncclComm_t comm = joined(id, kMany, rank);
    for (int ranks = kMany; ranks > 1; --ranks) {
      // Those in front leave: new ranks are one less.
      int mine = -1;
      EXPECT_EQ(ncclCommUserRank(comm, &mine), ncclSuccess);
      EXPECT_EQ(mine, rank - (kMany - ranks));
      EXPECT_EQ(sum(comm, 100), ncclSuccess);
      if (mine == 0) break;
      ncclComm_t next = nullptr;
      ASSERT_EQ(shrink(comm, {0}, &next, NCCL_SHRINK_DEFAULT), ncclSuccess) << lastError();
      EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
      comm = next;
    }
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

TEST(Shrink, ByDefaultLeavesTheParentAsItIs) {
  const ncclUniqueId id = newId();
  onProcesses(4, [&](int rank) {
    const ncclComm_t comm = joined(id, 4, rank);
    for (int round = 0; round < 3; ++round) {
      if (rank != 1 && rank != 3) {
        ncclComm_t next = nullptr;
        EXPECT_EQ(shrink(comm, {3, 1, 3}, &next, NCCL_SHRINK_DEFAULT), ncclSuccess) << lastError();
        int ranks = 0, mine = -1;
        EXPECT_EQ(ncclCommCount(next, &ranks), ncclSuccess);
        EXPECT_EQ(ncclCommUserRank(next, &mine), ncclSuccess);
        EXPECT_EQ(ranks, 2);
        EXPECT_EQ(mine, rank / 2);
        EXPECT_EQ(sum(next, 1000), ncclSuccess) << lastError();
        EXPECT_EQ(ncclCommDestroy(next), ncclSuccess);
      }
      EXPECT_EQ(sum(comm, 1000), ncclSuccess) << lastError();
    }
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    return 0;
  });
}

TEST(Shrink, WithAbortEndsCallsInFlight) {
  const ncclUniqueId id = newId();
  onThreads(3, [&](int rank) {
    const ncclComm_t comm = joined(id, 3, rank);
    if (rank == 2) return static_cast<void>(ncclCommAbort(comm));  // never comes to the call
    std::thread caller([&] { EXPECT_NE(sum(comm, 1000), ncclSuccess); });
    ncclComm_t next = nullptr;
    EXPECT_EQ(shrink(comm, {2}, &next), ncclSuccess) << lastError();
    caller.join();
    EXPECT_NE(awaitState(comm), ncclSuccess);
    EXPECT_EQ(sum(next, 1000), ncclSuccess) << lastError();
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(next), ncclSuccess);
  });
}

TEST(Shrink, WithoutExclusionsMakesAFreshOneOfAll) {
  const ncclUniqueId id = newId();
  onThreads(3, [&](int rank) {
    const ncclComm_t comm = joined(id, 3, rank);
    EXPECT_NE(sum(comm, rank == 1 ? 5 : 6), ncclSuccess);  // a mistake
    ncclComm_t next = nullptr;
    EXPECT_EQ(shrink(comm, {}, &next), ncclSuccess) << lastError();
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    EXPECT_EQ(sum(next, 1000), ncclSuccess) << lastError();
    EXPECT_EQ(ncclCommDestroy(next), ncclSuccess);
  });
}

TEST(Shrink, OfRanksThatExcludeDifferentOnesIsToldToAll) {
  const ncclUniqueId id = newId();
  std::atomic<int> told{0};
  onThreads(4, [&](int rank) {
    const ncclComm_t comm = joined(id, 4, rank);
    ncclComm_t next = nullptr;
    EXPECT_EQ(shrink(comm, {rank == 2 ? 1 : 3}, &next, NCCL_SHRINK_DEFAULT),
              rank == 3 ? ncclInvalidArgument : ncclInvalidUsage)
        << rank << lastError();
    EXPECT_EQ(next, nullptr);
    ++told;
    while (told < 4) std::this_thread::yield();
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

TEST(Shrink, NamesADeadRankThatRemains) {
  const ncclUniqueId id = newId();
  SharedValue<Shared> shared;
  onProcesses(
      4,
      [&](int rank) {
        const ncclComm_t comm = joined(id, 4, rank);
        if (rank == 2) ::kill(::getpid(), SIGKILL);
        ncclComm_t next = nullptr;
        if (rank == 3) return 0;
        EXPECT_EQ(awaitState(comm), ncclRemoteError);
        EXPECT_EQ(shrink(comm, {3}, &next), ncclRemoteError);
        EXPECT_TRUE(names(lastError(), 2)) << lastError();
        ++shared->told;
        while (shared->told < 2) ::usleep(500);
        EXPECT_EQ(shrink(comm, {2, 3}, &next), ncclSuccess) << lastError();
        EXPECT_EQ(sum(next, 100), ncclSuccess) << lastError();
        EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
        EXPECT_EQ(ncclCommDestroy(next), ncclSuccess);
        return 0;
      },
      [&](int rank, int status) {
        return rank == 2 ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0;
      });
}

TEST(Shrink, ListsWhoDidNotCome) {
  const Environment environment{{"TOPOCCL_INIT_TIMEOUT", "0.7"}};
  const ncclUniqueId id = newId();
  std::atomic<int> told{0};
  onThreads(4, [&](int rank) {
    const ncclComm_t comm = joined(id, 4, rank);
    if (rank == 0) {
      ncclComm_t next = nullptr;
      EXPECT_EQ(shrink(comm, {3}, &next, NCCL_SHRINK_DEFAULT), ncclRemoteError) << lastError();
      EXPECT_NE(lastError().find("waiting for ranks 1 and 2"), std::string::npos) << lastError();
    }
    ++told;
    while (told < 4) std::this_thread::yield();
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

TEST(Shrink, RunsInTheBackground) {
  const ncclUniqueId id = newId();
  onThreads(3, [&](int rank) {
    const ncclComm_t comm = joined(id, 3, rank);
    if (rank != 1) {
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      ncclComm_t next = nullptr;
      int excluded[] = {1};
      const ncclResult_t begun = ncclCommShrink(comm, excluded, 1, &next, &config, NCCL_SHRINK_DEFAULT);
      EXPECT_TRUE(begun == ncclInProgress || begun == ncclSuccess) << begun << lastError();
      ncclResult_t state = ncclInProgress;
      while (state == ncclInProgress) EXPECT_EQ(ncclCommGetAsyncError(next, &state), ncclSuccess);
      EXPECT_EQ(state, ncclSuccess) << lastError();
      int ranks = 0;
      EXPECT_EQ(ncclCommCount(next, &ranks), ncclSuccess);
      EXPECT_EQ(ranks, 2);
      EXPECT_EQ(ncclCommDestroy(next), ncclSuccess);
    }
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

TEST(Shrink, RunsInAGroupOfAllRanksOfAThread) {
  ncclComm_t comms[4] = {}, next[4] = {};
  ASSERT_EQ(ncclCommInitAll(comms, 4, nullptr), ncclSuccess);
  int excluded[] = {1};
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (const int rank : {0, 2, 3})
    EXPECT_EQ(ncclCommShrink(comms[rank], excluded, 1, &next[rank], nullptr, NCCL_SHRINK_DEFAULT),
              ncclSuccess);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << lastError();
  for (const int rank : {0, 2, 3}) {
    int mine = -1;
    EXPECT_EQ(ncclCommUserRank(next[rank], &mine), ncclSuccess);
    EXPECT_EQ(mine, std::max(0, rank - 1));
    EXPECT_EQ(ncclCommDestroy(next[rank]), ncclSuccess);
  }
  for (const ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(Shrink, RefusesWrongArguments) {
  ncclComm_t comm = nullptr, next = nullptr;
  ASSERT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess);
  int excluded[] = {0};
  const auto expectRefused = [&](ncclComm_t parent, int* list, int count, ncclComm_t* out, int flags,
                                 const char* named) {
    EXPECT_EQ(ncclCommShrink(parent, list, count, out, nullptr, flags), ncclInvalidArgument) << named;
    EXPECT_NE(lastError().find(named), std::string::npos) << lastError();
  };
  expectRefused(nullptr, excluded, 0, &next, 0, "comm is NULL");
  expectRefused(comm, nullptr, 1, &next, 0, "excludeRanksList is NULL");
  expectRefused(comm, excluded, -1, &next, 0, "excludeRanksCount is -1");
  expectRefused(comm, excluded, 0, nullptr, 0, "newcomm is NULL");
  expectRefused(comm, excluded, 0, &next, 2, "shrinkFlags is 2");
  expectRefused(comm, excluded, 1, &next, 0, "excludeRanksList has 0, the calling rank");
  excluded[0] = 7;
  expectRefused(comm, excluded, 1, &next, 0, "excludeRanksList has 7; it must have ranks in 0..0");
  EXPECT_EQ(sum(comm, 10), ncclSuccess) << "a refused call leaves the communicator alone";
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

}  // namespace
}  // namespace topoccl::test
