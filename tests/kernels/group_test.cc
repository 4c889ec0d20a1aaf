// The portable combine as a group of threads runs it: what a CUDA block does, on the host.
#include "kernels/group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "kernels/all_types.h"
#include "kernels/elements.h"
#include "kernels/operands.h"
#include "kernels/portable_combine.h"
#include "kernels/portable_functions.h"
#include "kernels/reference.h"

namespace topoccl {
namespace {

static_assert(Group<ThreadGroup> && Group<SoloGroup>);

template <class Function>
void runGroup(uint64_t size, const Function& function) {
  std::barrier<> barrier(static_cast<std::ptrdiff_t>(size));
  std::vector<std::jthread> threads;
  for (uint64_t rank = 1; rank < size; ++rank)
    threads.emplace_back([&, rank] { function(ThreadGroup(rank, size, barrier)); });
  function(ThreadGroup(0, size, barrier));
}

class PortableCombine : public testing::TestWithParam<TypeAndOperator> {
 protected:
  // Runs `shape` in a group of `threads` and compares every output with the reference.
  void check(uint64_t threads, CallShape shape) {
    const auto [type, op] = GetParam();
    shape.type = type;
    Operands operands(shape, shape.count);
    CombineArgs& args = operands.args();
    if (op == Operator::Avg) {
      args.scaledInputs = isFloating(type) ? ~uint64_t{0} : 0;
      args.scale = averageScale(type, 3);
      args.divisor = 3;
    }
    const std::vector<uint8_t> expected = reference::combine(type, op, args);
    const auto function =
        withElement(type, [op = op](auto row) { return portableFunction<decltype(row)>(op); });
    runGroup(threads, [&](const ThreadGroup& group) { function(args, group); });
    for (uint32_t i = 0; i < shape.outputs; ++i)
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), operands.output(i)))
          << "output " << i << ", count " << shape.count << ", inputs " << shape.inputs;
    ASSERT_TRUE(operands.marginsIntact());
  }
};

TEST_P(PortableCombine, EqualsTheReferenceInOneThread) {
  for (uint64_t count : {0u, 1u, 2u, 7u, 8u, 31u, 64u, 65u, 1000u}) {
    for (uint32_t inputs : {1u, 2u, 5u, 70u}) {
      for (size_t offset : {0u, 1u, 4u, 8u})
        check(
            1,
            {.count = count, .inputs = inputs, .outputs = 2, .inputOffset = offset, .outputOffset = offset});
      check(1, {.count = count, .inputs = inputs, .outputs = 1, .inPlace = true});
    }
  }
}

// Neighbours in memory belong to different threads; with tsan this shows that none touches another's.
TEST_P(PortableCombine, EqualsTheReferenceInAGroupOfFour) {
  for (uint64_t count : {1u, 3u, 4u, 17u, 63u, 64u, 65u, 257u, 1021u}) {
    check(4, {.count = count, .inputs = 3, .outputs = 2});
    check(4, {.count = count, .inputs = 2, .outputs = 1, .inPlace = true});
    check(4, {.count = count, .inputs = 1, .outputs = 1, .inputOffset = 8, .outputOffset = 8});
    check(4, {.count = count, .inputs = 2, .outputs = 1, .inputOffset = 3});
  }
}

INSTANTIATE_TEST_SUITE_P(All, PortableCombine,
                         testing::Combine(testing::ValuesIn(kTypes), testing::ValuesIn(kOperators)),
                         caseName);

// The sync at the end: a thread may read at once what the others wrote. Each call's input is the one before's
// output, shifted, so a missing sync is a race and, mostly, a wrong sum.
TEST(PortableCombineGroup, HasWrittenAllOutputsWhenItReturns) {
  constexpr uint64_t kCount = 1000;
  constexpr int kCalls = 20;
  std::vector<std::vector<int32_t>> buffers(kCalls + 1, std::vector<int32_t>(kCount + kCalls, 1));
  runGroup(4, [&](const ThreadGroup& group) {
    for (int call = 0; call < kCalls; ++call) {
      const void* inputs[] = {buffers[static_cast<size_t>(call)].data() + 1, buffers[0].data()};
      void* outputs[] = {buffers[static_cast<size_t>(call) + 1].data()};
      CombineArgs args;
      args.inputs = inputs;
      args.inputCount = 2;
      args.outputs = outputs;
      args.outputCount = 1;
      args.count = kCount;
      portableCombine<Int32, Sum>(args, group);
    }
  });
  EXPECT_EQ(buffers[kCalls][0], kCalls + 1);
  EXPECT_EQ(buffers[kCalls][kCount - kCalls], kCalls + 1);
}

}  // namespace
}  // namespace topoccl
