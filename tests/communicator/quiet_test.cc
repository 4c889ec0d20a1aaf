// A repeated ncclAllReduce of ranks that have a core each neither allocates nor enters the kernel.
#include <sched.h>

#include <barrier>

#include "communicator/ranks.h"
#include "support/allocations.h"
#include "support/count_calls.h"
#include "support/sanitized.h"

namespace topoccl::test {
namespace {

constexpr int kRanks = 2;
constexpr int kWarmUp = 20;
constexpr int kRepeats = 1000;

class Quiet : public testing::TestWithParam<size_t> {};

TEST_P(Quiet, ARepeatedAllReduceNeitherAllocatesNorEntersTheKernel) {
  if (kSanitized) GTEST_SKIP() << "sanitizers allocate and make system calls of their own";
  std::vector<size_t> cores;
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  for (size_t core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  if (cores.size() < kRanks) GTEST_SKIP() << "needs a core for each of " << kRanks << " ranks";

  const Environment environment{{"TOPOCCL_SPIN", "1000000000"}};  // others may use the cores meanwhile
  std::vector<ncclComm_t> comms(kRanks);
  const uint64_t beforeInit = allocationsOfThisThread();
  ASSERT_EQ(ncclCommInitAll(comms.data(), kRanks, nullptr), ncclSuccess);
  ASSERT_GT(allocationsOfThisThread(), beforeInit) << "the library's allocations must be seen";
  std::vector<uint64_t> allocations(kRanks, 1), calls(kRanks, 1);
  std::vector<uint8_t> counted(kRanks);
  std::barrier<> together(kRanks);
  onThreads(kRanks, [&](int rank) {
    const auto r = static_cast<size_t>(rank);
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cores[r], &only);
    ASSERT_EQ(::sched_setaffinity(0, sizeof(only), &only), 0);
    std::vector<float> in(GetParam(), 1), out(GetParam());
    const auto call = [&] {
      return ncclAllReduce(in.data(), out.data(), in.size(), ncclFloat, ncclSum, comms[r], nullptr);
    };
    for (int i = 0; i < kWarmUp; ++i) ASSERT_EQ(call(), ncclSuccess);
    together.arrive_and_wait();
    counted[r] = countCallsFromNowOn() ? 1 : 0;
    const uint64_t before = allocationsOfThisThread();
    int failures = 0;
    for (int i = 0; i < kRepeats; ++i) failures += call() == ncclSuccess ? 0 : 1;
    allocations[r] = allocationsOfThisThread() - before;
    calls[r] = callsTried;
    ASSERT_EQ(failures, 0);
  });
  for (size_t r = 0; r < kRanks; ++r) {
    EXPECT_EQ(allocations[r], 0U);
    if (counted[r] == 0) GTEST_SKIP() << "this system does not let a thread restrict its system calls";
    EXPECT_EQ(calls[r], 0U);
  }
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Quiet, testing::Values(2, 3000, 300000));

}  // namespace
}  // namespace topoccl::test
