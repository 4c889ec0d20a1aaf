// The interpreter agrees that emitted schedules are right, and sees when they are not.
#include "algorithms/interpreter.h"

#include <gtest/gtest.h>

#include "algorithms/emitters.h"

namespace topoccl {
namespace {

class Interpreter : public testing::TestWithParam<Emitter> {};

INSTANTIATE_TEST_SUITE_P(All, Interpreter, testing::ValuesIn(algorithmRows()), parameterName);

TEST_P(Interpreter, GetsTheRightSumsFromEverySchedule) {
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 13})
    for (const int root : rootsOf(GetParam(), ranks)) {
      const std::vector<Schedule> schedules = emitAll(GetParam(), ranks, 1 + root % 2, root);
      const Goal goal = goalOf(GetParam(), ranks, root);
      for (uint32_t seed = 1; seed <= 8; ++seed)
        for (const uint32_t moreSlots : {0u, 2u}) {
          InterpretOptions options;
          options.inPlace = goal.inPlace && seed % 2 == 1;
          options.share = seed % 4 >= 2;
          options.slots = schedules[0].minSlots + moreSlots;
          options.seed = seed;
          ASSERT_EQ(interpret(schedules, goal, options), "") << ranks << " ranks, seed " << seed;
        }
    }
}

TEST(Interpreter, SeesEachKindOfFault) {
  const auto outcome = [](const Emitter& emitter, auto change, bool share = false) {
    std::vector<Schedule> schedules = emitAll(emitter, 3);
    change(schedules[1]);
    InterpretOptions options;
    options.slots = schedules[0].minSlots;
    options.inPlace = options.share = share;
    std::string text;
    for (options.seed = 1; options.seed <= 50 && text.empty(); ++options.seed)
      text = interpret(schedules, goalOf(Collective::AllReduce, 3), options);
    return text;
  };
  const Emitter& ring = allReduce(Algorithm::Ring);
  const Emitter& oneShot = allReduce(Algorithm::MeshOneShot);
  EXPECT_EQ(outcome(ring, [](Schedule&) {}), "");
  EXPECT_EQ(outcome(ring, [](Schedule& s) { s.steps[0].outChunk = 2; }), "a packet of another chunk");
  EXPECT_NE(outcome(ring, [](Schedule& s) { s.steps[0].inChunk = 2; }).find("wrong sum"), std::string::npos);
  EXPECT_NE(outcome(ring, [](Schedule& s) { s.steps[2].final = false; }).find("final 0"), std::string::npos);
  EXPECT_EQ(outcome(ring, [](Schedule& s) { s.lanes[0].stepCount = 0; }), "deadlock");
  EXPECT_NE(
      outcome(oneShot, [](Schedule& s) { std::swap(s.operands[2], s.operands[3]); }).find("another order"),
      std::string::npos);
  // References in place, which one-shot forbids.
  const auto refer = [](Schedule& s) { s.copyInPlace = false; };
  EXPECT_EQ(outcome(oneShot, refer, false), "");
  EXPECT_NE(outcome(oneShot, refer, true), "");
}

}  // namespace
}  // namespace topoccl
