// Ranks that are killed, with and without a root that could tell; what the others can still do.
#include <signal.h>

#include <array>

#include "communicator/survivors.h"

namespace topoccl::test {
namespace {

using namespace std::chrono_literals;

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
    const std::string own = "rank " + std::to_string(rank) + ": rank " + std::to_string(victim) + " failed: ";
    EXPECT_NE(lastError().find(own), std::string::npos) << lastError();
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

// Rank 0 has left, and its process, in which the root was: nobody can tell the last rank of rank 1's death.
// All others have left too.
void expectNoticedWithoutRoot(int ranks) {
  SharedValue<Shared> shared;
  onProcesses(
      ranks,
      [&](int rank) {
        const ncclComm_t comm = joined(idFor(*shared, Root::WithRank0, rank), ranks, rank);
        EXPECT_EQ(sum(comm, 10), ncclSuccess) << lastError();
        if (rank != 1 && rank != ranks - 1) {
          EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
          ++shared->told;
          return 0;
        }
        while (shared->told < ranks - 2) ::usleep(500);
        ::usleep(200'000);  // until their processes are gone, most likely
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

TEST(Death, AfterTheRootHasGoneIsNoticedAllTheSame) {
  expectNoticedWithoutRoot(kRanks);
}

// Nobody looks at all of so many at once.
TEST(Death, AmongManyIsNoticedByWhoIsAlone) {
  for (const int ranks : {16, 17, 35}) expectNoticedWithoutRoot(ranks);
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

// Who learns of a death by other ways, and aborts, names it to those that had not seen it yet.
TEST(Abort, AfterADeathNamesTheDead) {
  for (int round = 0; round < 5; ++round) {
    const ncclUniqueId id = newId();
    SharedValue<std::array<std::atomic<pid_t>, 3>> processes;
    SharedValue<Shared> shared;
    onProcesses(
        3,
        [&](int rank) {
          const ncclComm_t comm = joined(id, 3, rank);
          (*processes)[static_cast<size_t>(rank)] = ::getpid();
          ++shared->arrived;
          while (shared->arrived < 3) ::usleep(200);
          if (rank == 2) ::pause();
          if (rank == 0) {
            ::kill((*processes)[1], SIGSTOP);  // it sees nothing
            ::kill((*processes)[2], SIGKILL);
            ::usleep(20'000);
            EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
            ::kill((*processes)[1], SIGCONT);
            return 0;
          }
          EXPECT_EQ(awaitState(comm), ncclRemoteError);
          EXPECT_TRUE(names(lastError(), 2)) << lastError();
          EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
          return 0;
        },
        [&](int rank, int status) {
          return rank == 2 ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0;
        });
  }
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

}  // namespace
}  // namespace topoccl::test
