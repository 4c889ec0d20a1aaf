#include "kernels/host/stream_plan.h"

#include <gtest/gtest.h>

#include <vector>

namespace topoccl {
namespace {

constexpr uint64_t kPack = 64;
constexpr uint64_t kElement = 4;

// Plans for outputs at these addresses.
StreamPlan plan(const std::vector<uintptr_t>& addresses, uint64_t streamed, uint64_t count = 1000) {
  std::vector<void*> outputs;
  for (uintptr_t address : addresses) outputs.push_back(reinterpret_cast<void*>(address));
  CombineArgs args;
  args.outputs = outputs.data();
  args.outputCount = static_cast<uint32_t>(outputs.size());
  args.count = count;
  args.streamedOutputs = streamed;
  return planStreams(args, kPack, kElement);
}

TEST(StreamPlan, BeginsAtTheFirstAlignedPack) {
  EXPECT_EQ(plan({640}, 1).head, 0u);
  EXPECT_EQ(plan({644}, 1).head, 15u);
  EXPECT_EQ(plan({700}, 1).head, 1u);
  EXPECT_EQ(plan({644}, 1, 3).head, 3u);
}

TEST(StreamPlan, TakesOutputsOfOnePhaseOnly) {
  EXPECT_EQ(plan({640, 1280, 1284, 64}, ~uint64_t{0}).outputs, 0b1011u);
  EXPECT_EQ(plan({640, 1284, 68}, 0b110).outputs, 0b110u);
}

TEST(StreamPlan, LeavesOutWhatIsNotAskedForOrCanNeverBeAligned) {
  EXPECT_EQ(plan({640, 641}, 0b10).outputs, 0u);
  EXPECT_EQ(plan({640, 641}, 0b10).head, 0u);
  EXPECT_EQ(plan({641, 640}, 0b11).outputs, 0b10u);
  EXPECT_EQ(plan({640}, 0b10).outputs, 0u);
}

}  // namespace
}  // namespace topoccl
