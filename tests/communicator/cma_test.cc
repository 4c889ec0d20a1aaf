// Processes that read each other's large buffers by address (TOPOCCL_CMA): data, errors, deaths.
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <fstream>

#include "communicator/movements.h"
#include "communicator/survivors.h"
#include "support/deny_call.h"
#include "support/sanitized.h"

namespace topoccl::test {
namespace {

using namespace std::chrono_literals;

// Whether processes of one user may read each other here.
bool processesMayRead() {
  int scope = 0;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  return scope == 0 || (::geteuid() == 0 && scope < 3);
}

class Cma : public testing::Test {
 protected:
  void SetUp() override {
    if (!processesMayRead()) GTEST_SKIP() << "SKIPPED: kernel.yama.ptrace_scope keeps processes apart";
    ::setenv("TOPOCCL_CMA", "1", 1);
  }
  void TearDown() override { ::unsetenv("TOPOCCL_CMA"); }
};

// Counts around the least that is fetched, 64 KiB, and pieces of 128 KiB, for blocks and for whole buffers.
constexpr size_t kCounts[] = {16383, 16384, 16385, 32768, 32769, 100'003, 1'000'003};

TEST_F(Cma, MovesWhatSlotsMove) {
  for (const int ranks : {2, 3}) {
    const ncclUniqueId id = newId();
    onProcesses(ranks, [&](int rank) {
      const Comm comm(id, ranks, rank);
      uint32_t seed = 0;
      for (const Movement movement : kMovements)
        for (const size_t count : kCounts)
          for (const bool inPlace : {false, true}) {
            if (inPlace && !hasInPlace(movement)) continue;
            const int root = hasRoot(movement) ? static_cast<int>(seed) % ranks : -1;
            expectMovement(movement, comm, ranks, rank, root, count, inPlace, seed, seed % 5);
            ++seed;
          }
      return 0;
    });
  }
}

// Threads of one process among processes: readers of both kinds at one connection.
TEST_F(Cma, ServesProcessesOfSeveralRanks) {
  constexpr int kRanks = 4;
  const ncclUniqueId id = newId();
  onProcesses(2, [&](int process) {
    onThreads(2, [&](int thread) {
      const int rank = 2 * process + thread;
      const Comm comm(id, kRanks, rank);
      for (const Movement movement : {Movement::AllGather, Movement::AllToAll, Movement::SendRecv})
        for (const size_t count : {size_t{32768}, size_t{300'007}})
          expectMovement(movement, comm, kRanks, rank, -1, count, false);
    });
    return 0;
  });
}

// Where the kernel refuses, in one of them, slots serve.
TEST_F(Cma, IsDoneWithoutWhereItIsDenied) {
  const ncclUniqueId id = newId();
  onProcesses(2, [&](int rank) {
    if (rank == 1 && !denyCall(SYS_process_vm_readv)) return 0;
    const Comm comm(id, 2, rank);
    for (const Movement movement : {Movement::AllGather, Movement::AllToAll, Movement::SendRecv})
      expectMovement(movement, comm, 2, rank, -1, 300'007, false);
    return 0;
  });
}

constexpr size_t kBytes = 1 << 20;

// A word there and back: whoever receives is there.
void meet(ncclComm_t comm, int rank) {
  char word = 0;
  for (const int sender : {0, 1}) {
    const ncclResult_t result = rank == sender ? ncclSend(&word, 1, ncclChar, 1 - rank, comm, nullptr)
                                               : ncclRecv(&word, 1, ncclChar, 1 - rank, comm, nullptr);
    EXPECT_EQ(result, ncclSuccess) << lastError();
  }
}

// Rank 0 sends what it may not read itself: through a slot it would be it that fails, by SIGSEGV.
TEST_F(Cma, ABufferThatIsNoneIsToldToBoth) {
  const ncclUniqueId id = newId();
  onProcesses(2, [&](int rank) {
    const ncclComm_t comm = joined(id, 2, rank);
    meet(comm, rank);
    void* const buffer = ::mmap(nullptr, kBytes, rank == 0 ? PROT_NONE : PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const ncclResult_t result = rank == 0 ? ncclSend(buffer, kBytes, ncclChar, 1, comm, nullptr)
                                          : ncclRecv(buffer, kBytes, ncclChar, 0, comm, nullptr);
    EXPECT_EQ(result, ncclSystemError);
    for (const char* part : {"rank 1", "recv #2", "rank 0's buffer", "Bad address", "TOPOCCL_CMA=0"})
      EXPECT_NE(lastError().find(part), std::string::npos) << part << " in: " << lastError();
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    return 0;
  });
}

// The sender has its buffer back when its call returns: the receiver has what was in it before.
TEST_F(Cma, ABufferIsItsOwnersAgainWhenTheCallReturns) {
  const ncclUniqueId id = newId();
  onProcesses(2, [&](int rank) {
    const Comm comm(id, 2, rank);
    std::vector<uint32_t> buffer(kBytes / 4);
    for (uint32_t round = 0; round < 30; ++round) {
      if (rank == 0) {
        std::fill(buffer.begin(), buffer.end(), round);
        EXPECT_EQ(ncclSend(buffer.data(), buffer.size(), ncclUint32, 1, comm, nullptr), ncclSuccess);
        std::fill(buffer.begin(), buffer.end(), ~round);
      } else {
        if (round % 4 == 0) std::this_thread::sleep_for(2ms);
        EXPECT_EQ(ncclRecv(buffer.data(), buffer.size(), ncclUint32, 0, comm, nullptr), ncclSuccess);
        EXPECT_EQ(std::count(buffer.begin(), buffer.end(), round), static_cast<ptrdiff_t>(buffer.size()));
      }
    }
    return 0;
  });
}

// A rank that is killed in the middle of calls: the other one is told, whether it was about to read or to be
// read. An abort needs nobody's help.
TEST_F(Cma, DeathsAndAbortsEndCalls) {
  for (const bool aborts : {false, true})
    for (const int victim : {0, 1}) {
      const ncclUniqueId id = newId();
      onProcesses(
          2,
          [&](int rank) {
            const ncclComm_t comm = joined(id, 2, rank);
            std::vector<char> in(kBytes), out(2 * kBytes);
            std::thread end([&] {
              if (rank != victim) return;
              std::this_thread::sleep_for(30ms);
              if (aborts)
                EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
              else
                ::kill(::getpid(), SIGKILL);
            });
            ncclResult_t result = ncclSuccess;
            while (result == ncclSuccess)
              result = ncclAllGather(in.data(), out.data(), kBytes, ncclChar, comm, nullptr);
            end.join();
            if (rank == victim) return 0;
            EXPECT_EQ(result, ncclRemoteError) << lastError();
            EXPECT_TRUE(names(lastError(), victim)) << lastError();
            EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
            return 0;
          },
          [&](int rank, int status) {
            return !aborts && rank == victim ? WIFSIGNALED(status)
                                             : WIFEXITED(status) && WEXITSTATUS(status) == 0;
          });
    }
}

}  // namespace
}  // namespace topoccl::test
