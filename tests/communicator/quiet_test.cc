// A repeated ncclAllReduce, or a repeated group of sends and receives, of ranks that have a core each neither
// allocates nor enters the kernel.
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

// Of `count` floats in all, on rank `rank` of two.
using Operation = ncclResult_t (*)(int rank, const float* in, float* out, size_t count, ncclComm_t comm);

ncclResult_t allReduce(int, const float* in, float* out, size_t count, ncclComm_t comm) {
  return ncclAllReduce(in, out, count, ncclFloat, ncclSum, comm, nullptr);
}

// A message to and from the other one, one to itself, and a collective.
ncclResult_t group(int rank, const float* in, float* out, size_t count, ncclComm_t comm) {
  const size_t part = count / 2;
  ncclGroupStart();
  for (const int peer : {1 - rank, rank}) {
    ncclSend(in, part, ncclFloat, peer, comm, nullptr);
    ncclRecv(out + (peer == rank ? part : 0), part, ncclFloat, peer, comm, nullptr);
  }
  ncclAllReduce(in, out + 2 * part, part, ncclFloat, ncclSum, comm, nullptr);
  return ncclGroupEnd();
}

struct Repeated {
  const char* name;
  Operation operation;
  size_t count;
};

std::ostream& operator<<(std::ostream& out, const Repeated& repeated) {
  return out << repeated.name << '_' << repeated.count;
}

class Quiet : public testing::TestWithParam<Repeated> {};

TEST_P(Quiet, WhatIsRepeatedNeitherAllocatesNorEntersTheKernel) {
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
    std::vector<float> in(GetParam().count, 1), out(2 * GetParam().count);
    const auto call = [&] { return GetParam().operation(rank, in.data(), out.data(), in.size(), comms[r]); };
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

INSTANTIATE_TEST_SUITE_P(Sizes, Quiet,
                         testing::Values(Repeated{"all_reduce", allReduce, 2},
                                         Repeated{"all_reduce", allReduce, 3000},
                                         Repeated{"all_reduce", allReduce, 300'000},
                                         Repeated{"group", group, 2}, Repeated{"group", group, 3000},
                                         Repeated{"group", group, 100'000}),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace topoccl::test
