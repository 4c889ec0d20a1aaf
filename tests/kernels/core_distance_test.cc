// When a reader takes the producer's core for a far one.
#include "kernels/core_distance.h"

#include <gtest/gtest.h>

#include <vector>

namespace topoccl::test {
namespace {

void add(CoreDistance& distance, const std::vector<int64_t>& loads) {
  for (const int64_t load : loads) distance.add(load);
}

TEST(CoreDistance, IsNearUntilItIsKnown) {
  CoreDistance distance;
  EXPECT_FALSE(distance.far());
  add(distance, {110, 110, 110});
  EXPECT_FALSE(distance.far());
  add(distance, {110});
  EXPECT_TRUE(distance.far());
}

// A reader that was interrupted takes long for any line, and says nothing.
TEST(CoreDistance, BelievesTheQuickestOfSomeLoads) {
  CoreDistance distance;
  add(distance, {2000, 10, 2000, 3000});
  EXPECT_FALSE(distance.far());
  add(distance, {2000, 110, 2000, 3000});
  EXPECT_TRUE(distance.far());
}

TEST(CoreDistance, FollowsCoresThatMove) {
  CoreDistance distance;
  for (int round = 0; round < 3; ++round) {
    add(distance, {110, 120, 110, 130});
    EXPECT_TRUE(distance.far()) << round;
    add(distance, {10, 20, 0, 20});
    EXPECT_FALSE(distance.far()) << round;
  }
}

// Between the two a reader stays with what it has.
TEST(CoreDistance, DoesNotWaver) {
  CoreDistance distance;
  add(distance, {60, 60, 60, 60});
  EXPECT_FALSE(distance.far());
  add(distance, {110, 110, 110, 110, 60, 60, 60, 60});
  EXPECT_TRUE(distance.far());
}

TEST(CoreDistance, IsWhatItIsToldToBe) {
  CoreDistance distance;
  distance.assumeFar();
  const uint64_t line = 0;
  for (int i = 0; i < 100; ++i) distance.look(&line);  // its own core's
  EXPECT_TRUE(distance.far());
  CoreDistance own;
  for (int i = 0; i < 100; ++i) own.look(&line);
  EXPECT_FALSE(own.far());
}

}  // namespace
}  // namespace topoccl::test
