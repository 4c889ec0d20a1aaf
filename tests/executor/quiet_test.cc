// A repeated all-reduce of ranks that have a core each neither allocates nor enters the kernel.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <barrier>
#include <thread>
#include <tuple>

#include "support/allocations.h"
#include "support/count_calls.h"
#include "support/int32_buffers.h"
#include "support/node_ranks.h"
#include "support/sanitized.h"

namespace topoccl::test {
namespace {

constexpr int kRanks = 2;
constexpr int kWarmUp = 20;
constexpr int kRepeats = 1000;

// The first processors this process may run on.
std::vector<size_t> allowedCores() {
  std::vector<size_t> cores;
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return cores;
  for (size_t core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  return cores;
}

void stayOn(size_t core) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core, &only);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(only), &only), 0);
}

struct Noise {
  uint64_t allocations = 0;
  uint64_t calls = 0;
  int lastCall = -1;
  bool counted = true;  // system calls
};

class Quiet : public testing::TestWithParam<std::tuple<Algorithm, Protocol, Transport, uint64_t>> {
 protected:
  static Request request() {
    const auto [algorithm, protocol, transport, count] = GetParam();
    Request request;
    request.algorithm = algorithm;
    request.protocol = protocol;
    request.type = DataType::Int32;
    request.count = count;
    return request;
  }

  // Runs the same call again and again on two threads with a core each; `extra` is done in every one.
  template <class Extra>
  static std::vector<Noise> repeat(bool countCalls, const Extra& extra) {
    // Spinning as long as it takes.
    NodeRanks node(kRanks, std::get<Transport>(GetParam()), {}, {.waiting = {UINT32_MAX, 0}, .patience = {}});
    Int32Buffers buffers(kRanks, request().count, 1);
    const std::vector<size_t> cores = allowedCores();
    std::vector<Noise> noises(kRanks);
    std::barrier<> together(kRanks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank)
      threads.emplace_back([&, rank] {
        const auto r = static_cast<size_t>(rank);
        stayOn(cores[r]);
        const auto work = node.makeWork(request(), rank, buffers.ins[r], buffers.outs[r], 0);
        Waiter waiter;
        Rank self{node, *work, waiter, rank};
        for (uint64_t call = 0; call < kWarmUp; ++call) self.run(call);
        together.arrive_and_wait();
        if (countCalls) noises[r].counted = countCallsFromNowOn();
        const uint64_t before = allocationsOfThisThread();
        for (uint64_t call = kWarmUp; call < kWarmUp + kRepeats; ++call) {
          self.run(call);
          extra();
        }
        noises[r].allocations = allocationsOfThisThread() - before;
        noises[r].calls = callsTried;
        noises[r].lastCall = lastCallTried;
      });
    for (std::thread& thread : threads) thread.join();
    for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(buffers.flawOf(rank), "");
    return noises;
  }

 private:
  struct Rank {
    NodeRanks& node;
    NodeRanks::RankWork& work;
    Waiter& waiter;
    int rank;

    void run(uint64_t call) {
      Work* const works[] = {&work};
      Doorbell* bells[] = {&node.memory().board().doorbell(rank)};
      work.renumber(call);
      waiter.reset({UINT32_MAX, 0}, bells, 1);
      WorkQueue queue;
      queue.works = works;
      drive({&queue, 1}, waiter);
    }
  };
};

TEST_P(Quiet, ARepeatedCallAllocatesNothing) {
  if (allowedCores().size() < kRanks) GTEST_SKIP() << "needs a core for each of " << kRanks << " ranks";
  for (const Noise& noise : repeat(false, [] {})) EXPECT_EQ(noise.allocations, 0U);
}

TEST_P(Quiet, ARepeatedCallNeverEntersTheKernel) {
  if (kSanitized) GTEST_SKIP() << "sanitizers make system calls of their own";
  if (allowedCores().size() < kRanks) GTEST_SKIP() << "needs a core for each of " << kRanks << " ranks";
  for (const Noise& noise : repeat(true, [] {})) {
    if (!noise.counted) GTEST_SKIP() << "this system does not let a thread restrict its system calls";
    EXPECT_EQ(noise.calls, 0U) << "the last one was number " << noise.lastCall;
  }
}

class QuietCheck : public Quiet {};

// Both counters count.
TEST_P(QuietCheck, SeesWhatThereIs) {
  if (allowedCores().size() < kRanks) GTEST_SKIP() << "needs a core for each of " << kRanks << " ranks";
  for (const Noise& noise : repeat(false, [] { ::operator delete(::operator new(1)); }))
    EXPECT_EQ(noise.allocations, uint64_t{kRepeats});
  if (kSanitized) return;
  for (const Noise& noise : repeat(true, [] { ::sched_yield(); })) {
    if (!noise.counted) continue;
    EXPECT_EQ(noise.calls, uint64_t{kRepeats});
    EXPECT_EQ(noise.lastCall, SYS_sched_yield);
  }
}

std::string parameterName(
    const testing::TestParamInfo<std::tuple<Algorithm, Protocol, Transport, uint64_t>>& info) {
  const auto [algorithm, protocol, transport, count] = info.param;
  return concat(topoccl::name(algorithm), '_', topoccl::name(protocol), '_', name(transport), '_', count);
}

INSTANTIATE_TEST_SUITE_P(
    Default, Quiet,
    testing::Combine(testing::Values(Algorithm::MeshOneShot, Algorithm::MeshTwoShot, Algorithm::Ring),
                     testing::Values(Protocol::Packet), testing::Values(Transport::InProcess, Transport::Shm),
                     testing::Values(2, 3000)),
    parameterName);
INSTANTIATE_TEST_SUITE_P(One, QuietCheck,
                         testing::Values(std::tuple(Algorithm::MeshOneShot, Protocol::Packet,
                                                    Transport::InProcess, uint64_t{2})),
                         parameterName);
INSTANTIATE_TEST_SUITE_P(Others, Quiet,
                         testing::Combine(testing::Values(Algorithm::Tree, Algorithm::HalvingDoubling),
                                          testing::Values(Protocol::Bulk),
                                          testing::Values(Transport::InProcess), testing::Values(3000)),
                         parameterName);

}  // namespace
}  // namespace topoccl::test
