// Ranks that agree are never told that they do not, however late they come.
#include <signal.h>

#include <random>

#include "communicator/calls.h"
#include "communicator/ranks.h"

namespace topoccl::test {
namespace {

using namespace std::chrono_literals;

// Ranks that stand in a circle for a while, some of them stopped, and all of which go on.
TEST(Agreement, IsNotDoubtedWhileRanksAreStopped) {
  const ncclUniqueId id = newId();
  constexpr int kRanks = 3;
  SharedValue<std::atomic<pid_t>> stopped;
  std::thread waker([&] {
    for (;; std::this_thread::sleep_for(1ms)) {
      const pid_t pid = *stopped;
      if (pid < 0) return;
      if (pid == 0) continue;
      std::this_thread::sleep_for(2s);  // longer than what makes a circle suspicious
      *stopped = 0;
      ::kill(pid, SIGCONT);
    }
  });
  onProcesses(kRanks, [&](int rank) {
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, kRanks, id, rank), ncclSuccess);
    Buffers buffers(1000);
    for (int round = 0; round < kRanks; ++round) {
      // Round robin: everybody waits for the one that is stopped, which then finds its message at once, and
      // waits for the next.
      if (rank == round) {
        *stopped = ::getpid();
        ::raise(SIGSTOP);
      }
      const int next = (rank + 1) % kRanks, before = (rank + kRanks - 1) % kRanks;
      if (rank == round) {
        EXPECT_EQ(run({Call::Send, 8, next}, comm, buffers), ncclSuccess) << lastError();
        EXPECT_EQ(run({Call::Receive, 8, before}, comm, buffers), ncclSuccess) << lastError();
      } else {
        EXPECT_EQ(run({Call::Receive, 8, before}, comm, buffers), ncclSuccess) << lastError();
        EXPECT_EQ(run({Call::Send, 8, next}, comm, buffers), ncclSuccess) << lastError();
      }
      EXPECT_EQ(run({}, comm, buffers), ncclSuccess) << lastError();
    }
    ncclResult_t state = ncclSystemError;
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
    EXPECT_EQ(state, ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    return 0;
  });
  *stopped = -1;
  waker.join();
}

// The rank that was stopped still says that it waits for the root, which waits for it.
TEST(Agreement, IsNotDoubtedWhileAStoppedRankHasNotSeenItsData) {
  const ncclUniqueId id = newId();
  SharedValue<std::atomic<pid_t>> waiting;
  onProcesses(2, [&](int rank) {
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, 2, id, rank), ncclSuccess);
    const Call call{Call::Broadcast, size_t{4} << 20, 0};
    Buffers buffers(bytesOf(call, 1));
    if (rank == 1) *waiting = ::getpid();
    std::thread waker;
    if (rank == 0) {
      while (*waiting == 0) ::usleep(1000);
      ::usleep(1'000'000);  // it has said by now that it waits
      ::kill(*waiting, SIGSTOP);
      waker = std::thread([&] {
        std::this_thread::sleep_for(2s);  // longer than what makes a circle suspicious
        ::kill(*waiting, SIGCONT);
      });
    }
    EXPECT_EQ(run(call, comm, buffers), ncclSuccess) << lastError();
    if (waker.joinable()) waker.join();
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    return 0;
  });
}

// Inside a call all ranks may wait for each other's lanes, while it is a stopped rank that they all need.
TEST(Agreement, IsNotDoubtedWhileARankIsStoppedInsideACall) {
  constexpr int kRanks = 4;
  for (const char* algorithm : {"mesh_twoshot", "ring", "tree"}) {
    const Environment environment{{"NCCL_ALGO", algorithm}};
    const ncclUniqueId id = newId();
    SharedValue<std::atomic<pid_t>> victim;
    SharedValue<std::atomic<bool>> over;
    std::thread stopper([&] {
      while (*victim == 0) std::this_thread::sleep_for(1ms);
      std::this_thread::sleep_for(100ms);
      ::kill(*victim, SIGSTOP);
      std::this_thread::sleep_for(1500ms);  // longer than what makes a circle suspicious
      ::kill(*victim, SIGCONT);
      *over = true;
    });
    onProcesses(kRanks, [&](int rank) {
      ncclComm_t comm = nullptr;
      EXPECT_EQ(ncclCommInitRank(&comm, kRanks, id, rank), ncclSuccess);
      const Call call{Call::AllReduce, size_t{1} << 20};
      Buffers buffers(bytesOf(call, 1));
      EXPECT_EQ(run(call, comm, buffers), ncclSuccess) << lastError();
      if (rank == 3) *victim = ::getpid();
      // Rank 3 says in each call whether it is the last.
      for (float last = 0, all = 0; all == 0;) {
        EXPECT_EQ(run(call, comm, buffers), ncclSuccess) << algorithm << lastError();
        last = rank == 3 && *over ? 1 : 0;
        const ncclResult_t result = ncclAllReduce(&last, &all, 1, ncclFloat, ncclSum, comm, nullptr);
        EXPECT_EQ(result, ncclSuccess) << algorithm << lastError();
        if (result != ncclSuccess) break;
      }
      EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
      return 0;
    });
    stopper.join();
  }
}

// What a rank waits for changes while nothing of it moves: first for one child of a tree, then for the other.
TEST(Agreement, IsNotDoubtedWhereTheRanksOfATreeComeLate) {
  const Environment environment{{"NCCL_ALGO", "tree"}};
  const ncclUniqueId id = newId();
  onProcesses(3, [&](int rank) {
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, 3, id, rank), ncclSuccess);
    Buffers buffers(1000);
    EXPECT_EQ(run({}, comm, buffers), ncclSuccess) << lastError();
    ::usleep(rank == 1 ? 0 : rank == 0 ? 1'000'000 : 2'500'000);
    EXPECT_EQ(run({}, comm, buffers), ncclSuccess) << lastError();
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    return 0;
  });
}

// A program of collectives and messages that all ranks follow, each with pauses of its own, some of which are
// longer than what makes a standstill.
TEST(Agreement, IsNotDoubtedHoweverLateRanksCome) {
  const bool reduced = std::getenv("TOPOCCL_TEST_REDUCED") != nullptr;
  const int rounds = reduced ? 150 : 600, longPauses = reduced                                       ? 1
                                                       : std::getenv("TOPOCCL_TEST_FULL") != nullptr ? 20
                                                                                                     : 2;
  constexpr int kRanks = 4;
  const ncclUniqueId id = newId();
  onProcesses(kRanks, [&](int rank) {
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, kRanks, id, rank), ncclSuccess);
    std::minstd_rand program(7), pauses(static_cast<unsigned>(rank) + 1);
    Buffers buffers(bytesOf({Call::AllReduce, 50'000}, kRanks));
    for (int round = 0; round < rounds; ++round) {
      const auto count = static_cast<size_t>(program() % (program() % 10 == 0 ? 50'000 : 100));
      const int from = static_cast<int>(program() % kRanks),
                distance = 1 + static_cast<int>(program() % (kRanks - 1));
      const int to = (from + distance) % kRanks;
      const auto kind = static_cast<Call::Kind>(program() % 7);
      if (round % (rounds / longPauses) == rank * 7) ::usleep(1'200'000);
      if (pauses() % 8 == 0) ::usleep(static_cast<useconds_t>(pauses() % 3000));
      ncclResult_t result = ncclSuccess;
      if (kind != Call::Send)
        result = run({kind, count, to}, comm, buffers);
      else if (rank == from)
        result = run({Call::Send, count, to}, comm, buffers);
      else if (rank == to)
        result = run({Call::Receive, count, from}, comm, buffers);
      EXPECT_EQ(result, ncclSuccess) << "rank " << rank << " round " << round << ": " << lastError();
      if (result != ncclSuccess) break;
      ncclResult_t state = ncclSystemError;
      EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
      EXPECT_EQ(state, ncclSuccess) << lastError();
    }
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    return 0;
  });
}

}  // namespace
}  // namespace topoccl::test
