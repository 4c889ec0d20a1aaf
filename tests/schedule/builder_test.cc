#include "schedule/builder.h"

#include <gtest/gtest.h>

namespace topoccl {
namespace {

TEST(ScheduleBuilder, MakesAConnectionOnItsFirstMention) {
  ScheduleBuilder builder(4, 1, 1);
  const Operand first = builder.send({3, 2}, 0, 0);
  const Operand same = builder.send({2, 3}, 0, 0);
  const Operand other = builder.send(2, 0, 0);
  EXPECT_EQ(first, same);
  EXPECT_NE(first, other);
  const Schedule schedule = builder.take();
  ASSERT_EQ(schedule.connections.size(), 2u);
  EXPECT_EQ(schedule.connections[0], (Connection{1, {2, 3}, 0, 0}));
  EXPECT_EQ(schedule.connections[1], (Connection{1, {2}, 0, 0}));
}

TEST(ScheduleBuilder, TellsApartDirectionsChannelsAndTags) {
  ScheduleBuilder builder(2, 0, 1);
  builder.send(1, 0, 0);
  builder.receive(1, 0, 0);
  builder.send(1, 1, 0);
  builder.send(1, 0, 1);
  EXPECT_EQ(builder.take().connections.size(), 4u);
}

TEST(ScheduleBuilder, OpensALaneForStepsThatHaveNone) {
  ScheduleBuilder builder(1, 0, 2);
  builder.step({kIn}, {kOut}, 0, 2);
  builder.lane();
  builder.step({kIn}, {kOut}, 0, 1, 1, true);
  const Schedule schedule = builder.take();
  ASSERT_EQ(schedule.lanes.size(), 2u);
  EXPECT_EQ(schedule.lanes[1], (Lane{1, 1}));
  EXPECT_EQ(schedule.steps[1], (Step{2, 1, 1, 0, 1, 1, true}));
  EXPECT_EQ(schedule.slotChunks, 2u);
}

}  // namespace
}  // namespace topoccl
