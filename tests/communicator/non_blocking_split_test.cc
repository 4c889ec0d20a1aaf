// Splits that do not block: several at once, and what may end them or their parent.
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>

#include "communicator/movements.h"
#include "communicator/non_blocking.h"
#include "communicator/ranks.h"

namespace topoccl::test {
namespace {

TEST(NonBlockingSplit, SplitsInTheBackground) {
  const ncclUniqueId id = newId();
  onThreads(3, [&](int rank) {
    const Comm comm(id, 3, rank);
    ncclConfig_t config = nonBlocking();
    ncclComm_t part = nullptr;
    const int color = rank == 1 ? NCCL_SPLIT_NOCOLOR : 0;
    EXPECT_EQ(ncclCommSplit(comm, color, 0, &part, &config), ncclInProgress) << lastError();
    EXPECT_EQ(awaitState(comm), ncclSuccess) << lastError();
    EXPECT_EQ(part == nullptr, rank == 1);
    if (part != nullptr) {
      EXPECT_EQ(awaitState(part), ncclSuccess) << lastError();
      expectMovement(Movement::AllGather, part, 2, rank / 2, -1, 100, false);
      EXPECT_EQ(ncclCommDestroy(part), ncclSuccess);
    }
    expectMovement(Movement::AllReduce, comm, 3, rank, -1, 100, false);
  });
}

// Destroy waits until the split can do without the parent; other calls may come between.
TEST(NonBlockingSplit, AParentIsDestroyedWhileItSplits) {
  const ncclUniqueId id = newId();
  onThreads(2, [&](int rank) {
    ncclComm_t comm = nullptr, part = nullptr;
    ASSERT_EQ(ncclCommInitRank(&comm, 2, id, rank), ncclSuccess);
    ncclConfig_t config = nonBlocking();
    float x = 1;
    if (rank == 1) {
      EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, comm, nullptr), ncclSuccess);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    EXPECT_EQ(ncclCommSplit(comm, 0, 0, &part, &config), ncclInProgress) << lastError();
    if (rank == 0) {
      EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, comm, nullptr), ncclSuccess);
    }
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    ASSERT_EQ(awaitState(part), ncclSuccess) << lastError();
    expectMovement(Movement::AllReduce, part, 2, rank, -1, 100, false);
    EXPECT_EQ(ncclCommDestroy(part), ncclSuccess);
  });
}

TEST(NonBlockingSplit, AbortEndsASplitThatWaits) {
  const ncclUniqueId id = newId();
  onThreads(2, [&](int rank) {
    ncclComm_t comm = nullptr, part = nullptr;
    ASSERT_EQ(ncclCommInitRank(&comm, 2, id, rank), ncclSuccess);
    ncclConfig_t config = nonBlocking();
    if (rank == 0) {
      EXPECT_EQ(ncclCommSplit(comm, 0, 0, &part, &config), ncclInProgress) << lastError();
      EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
      EXPECT_NE(awaitState(part), ncclSuccess);
      EXPECT_EQ(ncclCommAbort(part), ncclSuccess);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    }
  });
}

// They take turns, whatever their threads do.
TEST(NonBlockingSplit, SeveralOfAParentAtOnceStayApart) {
  constexpr int kRanks = 2;
  const ncclUniqueId id = newId();
  onThreads(kRanks, [&](int rank) {
    const Comm comm(id, kRanks, rank);
    ncclConfig_t config = nonBlocking();
    for (int round = 0; round < 5; ++round) {
      ncclComm_t both = nullptr, alone = nullptr, blocking = nullptr;
      ASSERT_EQ(ncclCommSplit(comm, 0, 0, &both, &config), ncclInProgress) << lastError();
      ASSERT_EQ(ncclCommSplit(comm, rank, 0, &alone, &config), ncclInProgress) << lastError();
      ASSERT_EQ(ncclCommSplit(comm, 0, -rank, &blocking, nullptr), ncclSuccess) << lastError();
      ASSERT_EQ(awaitState(both), ncclSuccess) << lastError();
      ASSERT_EQ(awaitState(alone), ncclSuccess) << lastError();
      int count = 0, place = -1;
      EXPECT_EQ(ncclCommCount(both, &count), ncclSuccess);
      EXPECT_EQ(count, kRanks);
      EXPECT_EQ(ncclCommCount(alone, &count), ncclSuccess);
      EXPECT_EQ(count, 1);
      EXPECT_EQ(ncclCommUserRank(blocking, &place), ncclSuccess);
      EXPECT_EQ(place, kRanks - 1 - rank);
      for (ncclComm_t part : {both, alone, blocking}) EXPECT_EQ(ncclCommDestroy(part), ncclSuccess);
    }
  });
}

TEST(NonBlockingSplit, AGroupMayHoldSeveral) {
  const ncclUniqueId id = newId();
  onThreads(2, [&](int rank) {
    const Comm comm(id, 2, rank);
    ncclConfig_t config = nonBlocking();
    ncclComm_t first = nullptr, second = nullptr;
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclCommSplit(comm, 0, 0, &first, &config), ncclSuccess);
    EXPECT_EQ(ncclCommSplit(comm, rank, 0, &second, &config), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclInProgress) << lastError();
    for (ncclComm_t part : {first, second}) {
      ASSERT_NE(part, nullptr);
      EXPECT_EQ(awaitState(part), ncclSuccess) << lastError();
      EXPECT_EQ(ncclCommDestroy(part), ncclSuccess);
    }
  });
}

// Finalize completes what was issued: splits too.
TEST(NonBlockingSplit, FinalizeLetsItEnd) {
  const ncclUniqueId id = newId();
  onThreads(2, [&](int rank) {
    const Comm comm(id, 2, rank);
    ncclConfig_t config = nonBlocking();
    ncclComm_t part = nullptr, late = nullptr;
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ASSERT_EQ(ncclCommSplit(comm, 0, 0, &part, &config), ncclInProgress) << lastError();
    EXPECT_EQ(ncclCommFinalize(comm), ncclSuccess) << lastError();
    EXPECT_EQ(ncclCommSplit(comm, 0, 0, &late, &config), ncclInvalidUsage);
    ASSERT_EQ(awaitState(part), ncclSuccess) << lastError();
    EXPECT_EQ(ncclCommDestroy(part), ncclSuccess);
  });
}

// Abort of the new communicator waits for nobody; the parent goes on.
TEST(NonBlockingSplit, ItsCommunicatorIsAbortedBeforeTheOthersCome) {
  const ncclUniqueId id = newId();
  std::atomic<bool> aborted{false};
  onThreads(2, [&](int rank) {
    const Comm comm(id, 2, rank);
    ncclConfig_t config = nonBlocking();
    ncclComm_t part = nullptr;
    if (rank == 0) {
      ASSERT_EQ(ncclCommSplit(comm, 0, 0, &part, &config), ncclInProgress) << lastError();
      EXPECT_EQ(ncclCommAbort(part), ncclSuccess);
      aborted = true;
    } else {
      for (int i = 0; i < 20'000 && !aborted; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ASSERT_TRUE(aborted);
      ASSERT_EQ(ncclCommSplit(comm, 0, 0, &part, &config), ncclInProgress) << lastError();
      EXPECT_EQ(ncclCommAbort(part), ncclSuccess);
    }
    expectMovement(Movement::AllReduce, comm, 2, rank, -1, 100, false);
  });
}

// When the parent says that it is done, the new one can be used.
TEST(NonBlockingSplit, TheParentIsInProgressUntilTheNewOneIsThere) {
  const ncclUniqueId id = newId();
  onThreads(2, [&](int rank) {
    const Comm comm(id, 2, rank);
    ncclConfig_t config = nonBlocking();
    for (int round = 0; round < 30; ++round) {
      ncclComm_t part = nullptr;
      ASSERT_EQ(ncclCommSplit(comm, 0, 0, &part, &config), ncclInProgress) << lastError();
      ncclResult_t state = ncclInProgress;
      while (state == ncclInProgress) ASSERT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
      ASSERT_EQ(state, ncclSuccess) << lastError();
      int place = -1;
      ASSERT_EQ(ncclCommUserRank(part, &place), ncclSuccess) << lastError();
      EXPECT_EQ(ncclCommDestroy(part), ncclSuccess);
    }
  });
}

// A rank that can't make the new communicator's id says so; nobody waits for it, and the parent goes on.
TEST(NonBlockingSplit, ARankThatFailsAloneTellsTheOthers) {
  const ncclUniqueId id = newId();
  onProcesses(2, [&](int rank) {
    const Comm comm(id, 2, rank);
    rlimit before{};
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    if (rank == 0) {
      const rlimit none{3, before.rlim_max};
      EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    }
    ncclComm_t part = nullptr;
    EXPECT_EQ(ncclCommSplit(comm, 0, 0, &part, nullptr), rank == 0 ? ncclSystemError : ncclRemoteError)
        << lastError();
    if (rank == 1) {
      EXPECT_NE(lastError().find("rank 0 made no id for the split: "), std::string::npos) << lastError();
    }
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    expectMovement(Movement::AllReduce, comm, 2, rank, -1, 100, false);
    return 0;
  });
}

}  // namespace
}  // namespace topoccl::test
