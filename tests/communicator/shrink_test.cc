// Communicators of the ranks that remain.
#include <signal.h>

#include <algorithm>

#include "communicator/deadlines.h"
#include "communicator/survivors.h"

namespace topoccl::test {
namespace {

using namespace std::chrono_literals;

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

// Not all ranks take part in each.
TEST(Shrink, OfDifferentRanksFollowEachOther) {
  const ncclUniqueId id = newId();
  onProcesses(4, [&](int rank) {
    const ncclComm_t comm = joined(id, 4, rank);
    for (int round = 0; round < 5; ++round)
      for (const int excluded : {3, 0, 2}) {
        if (rank == excluded) continue;
        ncclComm_t next = nullptr;
        EXPECT_EQ(shrink(comm, {excluded}, &next, NCCL_SHRINK_DEFAULT), ncclSuccess) << lastError();
        EXPECT_EQ(sum(next, 100), ncclSuccess) << lastError();
        EXPECT_EQ(ncclCommDestroy(next), ncclSuccess);
      }
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    return 0;
  });
}

TEST(Shrink, ThatFailedOnSomeMayBeTriedAgain) {
  const ncclUniqueId id = newId();
  std::atomic<int> failed{0};
  const Environment environment{{"TOPOCCL_COLLECTIVE_TIMEOUT", "0.05"}};
  onThreads(3, [&](int rank) {
    const ncclComm_t comm = joined(id, 3, rank);
    ncclComm_t next = nullptr;
    if (rank == 2) {
      while (failed < 2) std::this_thread::yield();
      EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
      return;
    }
    if (rank == 0) {
      EXPECT_EQ(ncclRecv(&next, 1, ncclInt8, 2, comm, nullptr), ncclRemoteError);  // which sends nothing
    }
    // Rank 0 can't; rank 1 learns that inside.
    EXPECT_NE(shrink(comm, {2}, &next, NCCL_SHRINK_DEFAULT), ncclSuccess);
    ++failed;
    EXPECT_EQ(shrink(comm, {2}, &next), ncclSuccess) << lastError();
    EXPECT_EQ(sum(next, 100), ncclSuccess) << lastError();
    EXPECT_EQ(ncclCommDestroy(next), ncclSuccess);
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  });
}

// Who learns of a death first is back at once, in a gathering of fewer, where the others still stand in the
// one before.
TEST(Shrink, MayBeTriedAgainAtOnceWithoutOneThatDiedMeanwhile) {
  for (int round = 0; round < 10; ++round) {
    const ncclUniqueId id = newId();
    onProcesses(
        4,
        [&](int rank) {
          const ncclComm_t comm = joined(id, 4, rank);
          if (rank == 3) ::kill(::getpid(), SIGKILL);
          if (rank == 2) {  // when the others wait for it
            ::usleep(static_cast<useconds_t>(5000 * round));
            ::kill(::getpid(), SIGKILL);
          }
          ncclComm_t next = nullptr;
          ncclResult_t result = shrink(comm, {3}, &next);
          EXPECT_EQ(result, ncclRemoteError) << lastError();
          EXPECT_TRUE(names(lastError(), 2)) << lastError();
          EXPECT_EQ(shrink(comm, {2, 3}, &next), ncclSuccess) << lastError();
          if (next == nullptr) return 1;
          EXPECT_EQ(sum(next, 100), ncclSuccess) << lastError();
          EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
          EXPECT_EQ(ncclCommDestroy(next), ncclSuccess);
          return 0;
        },
        [&](int rank, int status) {
          return rank >= 2 ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0;
        });
  }
}

// The first rank begins the second while others have not read yet that it is done with the first.
TEST(Shrink, OfFewerFollowsInTheBackground) {
  for (int round = 0; round < 30; ++round) {
    const ncclUniqueId id = newId();
    onThreads(4, [&](int rank) {
      const ncclComm_t comm = joined(id, 4, rank);
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      ncclComm_t next[2] = {};
      int excluded[] = {3, 2};
      for (int i = 0; i < 2 && rank < 3 - i; ++i) {
        const ncclResult_t begun =
            ncclCommShrink(comm, excluded, i + 1, &next[i], &config, NCCL_SHRINK_DEFAULT);
        EXPECT_TRUE(begun == ncclInProgress || begun == ncclSuccess) << begun << lastError();
      }
      for (const ncclComm_t made : next) {
        ncclResult_t state = made == nullptr ? ncclSuccess : ncclInProgress;
        while (state == ncclInProgress) ASSERT_EQ(ncclCommGetAsyncError(made, &state), ncclSuccess);
        EXPECT_EQ(state, ncclSuccess) << rank << lastError();
      }
      for (const ncclComm_t made : next)
        if (made != nullptr) {
          EXPECT_EQ(ncclCommDestroy(made), ncclSuccess);
        }
      EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    });
  }
}

// More often than the board remembers, or less.
TEST(Shrink, OfOneThatComesLateMeetsThoseThatTryAgain) {
  for (const int tries : {2, 12}) {
    const ncclUniqueId id = newId();
    std::atomic<int> failed{0};
    std::atomic<bool> over{false};
    onThreads(2, [&, tries = tries](int rank) {
      const ncclComm_t comm = joined(id, 2, rank, deadlines(0.02, -1, -1));
      ncclComm_t next = nullptr;
      if (rank == 1)
        while (failed < tries) std::this_thread::yield();
      for (int i = 0; next == nullptr && (rank == 0 ? !over : i < 20); ++i)
        if (shrink(comm, {}, &next, NCCL_SHRINK_DEFAULT) != ncclSuccess) {
          EXPECT_EQ(next, nullptr);
          if (rank == 0) ++failed;
          if (rank == 1) std::this_thread::sleep_for(2ms);
        }
      if (rank == 1) over = true;
      ASSERT_NE(next, nullptr) << lastError();
      EXPECT_EQ(sum(next, 100), ncclSuccess) << lastError();
      EXPECT_EQ(ncclCommDestroy(next), ncclSuccess);
      EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    });
  }
}

TEST(Shrink, EndsWithAnAbortOfTheParent) {
  const ncclUniqueId id = newId();
  std::atomic<int> ended{0};
  onThreads(3, [&](int rank) {
    const ncclComm_t comm = joined(id, 3, rank);
    if (rank != 0) {  // these never come
      while (ended < 1) std::this_thread::yield();
      EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
      return;
    }
    std::thread aborter([&] {
      std::this_thread::sleep_for(50ms);
      EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    });
    ncclComm_t next = nullptr;
    EXPECT_EQ(shrink(comm, {2}, &next), ncclInvalidUsage) << lastError();
    aborter.join();
    ++ended;
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
