// The portable combine as a group of threads runs it: what a CUDA block does, on the host.
#include "kernels/group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <thread>
#include <vector>

#include "kernels/operands.h"
#include "kernels/portable_combine.h"
#include "kernels/reference.h"

namespace topoccl {
namespace {

class ThreadGroup {
 public:
  ThreadGroup(uint64_t rank, uint64_t size, std::barrier<>& barrier)
      : rank_(rank), size_(size), barrier_(&barrier) {}
  uint64_t rank() const { return rank_; }
  uint64_t size() const { return size_; }
  void sync() const { barrier_->arrive_and_wait(); }

 private:
  uint64_t rank_;
  uint64_t size_;
  std::barrier<>* barrier_;
};
static_assert(Group<ThreadGroup> && Group<SoloGroup>);

template <class Function>
void runGroup(uint64_t size, const Function& function) {
  std::barrier<> barrier(static_cast<std::ptrdiff_t>(size));
  std::vector<std::jthread> threads;
  for (uint64_t rank = 1; rank < size; ++rank)
    threads.emplace_back([&, rank] { function(ThreadGroup(rank, size, barrier)); });
  function(ThreadGroup(0, size, barrier));
}

// One row: an element type and an operator, under the names that the host's function is asked by.
template <class Element_, class Op_, DataType kType_, Operator kOperator_>
struct Row {
  using Element = Element_;
  using Op = Op_;
  static constexpr DataType kType = kType_;
  static constexpr Operator kOperator = kOperator_;
};

using Rows = testing::Types<
    Row<Int32, Sum, DataType::Int32, Operator::Sum>, Row<Int32, Max, DataType::Int32, Operator::Max>,
    Row<Int32, Sum, DataType::Int32, Operator::Avg>, Row<Float32, Sum, DataType::Float32, Operator::Sum>,
    Row<Float32, Max, DataType::Float32, Operator::Max>, Row<Float32, Sum, DataType::Float32, Operator::Avg>,
    Row<Float64, Sum, DataType::Float64, Operator::Sum>, Row<Float64, Max, DataType::Float64, Operator::Max>,
    Row<Float64, Sum, DataType::Float64, Operator::Avg>,
    Row<Bfloat16, Sum, DataType::Bfloat16, Operator::Sum>,
    Row<Bfloat16, Max, DataType::Bfloat16, Operator::Max>,
    Row<Bfloat16, Sum, DataType::Bfloat16, Operator::Avg>>;

template <class T>
class PortableCombine : public testing::Test {
 protected:
  // Runs `shape` in a group of `threads` and compares every output with the reference.
  void check(uint64_t threads, CallShape shape) {
    shape.type = T::kType;
    Operands operands(shape, shape.count);
    CombineArgs& args = operands.args();
    if (T::kOperator == Operator::Avg) {
      args.scaledInputs = T::Element::kFloating ? ~uint64_t{0} : 0;
      args.scale = averageScale(T::kType, 3);
      args.divisor = 3;
    }
    const std::vector<uint8_t> expected = reference::combine(T::kType, T::kOperator, args);
    runGroup(threads, [&](const ThreadGroup& group) {
      portableCombine<typename T::Element, typename T::Op>(args, group);
    });
    for (uint32_t i = 0; i < shape.outputs; ++i)
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), operands.output(i)))
          << "output " << i << ", count " << shape.count << ", inputs " << shape.inputs;
    ASSERT_TRUE(operands.marginsIntact());
  }
};
TYPED_TEST_SUITE(PortableCombine, Rows);

TYPED_TEST(PortableCombine, EqualsTheReferenceInOneThread) {
  for (uint64_t count : {0u, 1u, 2u, 7u, 8u, 31u, 64u, 65u, 1000u}) {
    for (uint32_t inputs : {1u, 2u, 5u, 70u}) {
      for (size_t offset : {0u, 1u, 4u, 8u})
        this->check(
            1,
            {.count = count, .inputs = inputs, .outputs = 2, .inputOffset = offset, .outputOffset = offset});
      this->check(1, {.count = count, .inputs = inputs, .outputs = 1, .inPlace = true});
    }
  }
}

// Neighbours in memory belong to different threads; with tsan this shows that none touches another's.
TYPED_TEST(PortableCombine, EqualsTheReferenceInAGroupOfFour) {
  for (uint64_t count : {1u, 3u, 4u, 17u, 63u, 64u, 65u, 257u, 1021u}) {
    this->check(4, {.count = count, .inputs = 3, .outputs = 2});
    this->check(4, {.count = count, .inputs = 2, .outputs = 1, .inPlace = true});
    this->check(4, {.count = count, .inputs = 1, .outputs = 1, .inputOffset = 8, .outputOffset = 8});
    this->check(4, {.count = count, .inputs = 2, .outputs = 1, .inputOffset = 3});
  }
}

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
