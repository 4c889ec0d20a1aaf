#include "schedule/stepper.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "schedule/builder.h"

namespace topoccl {
namespace {

// Writes down what it is asked.
class Recorder {
 public:
  uint64_t pieces() const { return 2; }
  bool ready(const Operand& operand) {
    ++asked;
    return blocked.count(operand.connection) == 0;
  }
  bool perform(const Step& step, const Operand*, const Operand*, uint64_t piece) {
    if (refuse) return false;
    log.push_back(std::to_string(piece) + ":" + std::to_string(step.inChunk));
    return true;
  }
  void begin(uint32_t lane, uint64_t piece) {
    log.push_back("lane " + std::to_string(lane) + " piece " + std::to_string(piece));
  }

  std::set<uint32_t> blocked;
  bool refuse = false;
  int asked = 0;
  std::vector<std::string> log;
};

Schedule twoSteps() {
  ScheduleBuilder builder(3, 0, 2);
  const Operand a = builder.receive(1, 0, 0);
  const Operand b = builder.receive(2, 0, 0);
  builder.step({a, b, kIn}, {kOut}, 0);
  builder.step({kOut}, {builder.send(1, 0, 0)}, 1);
  return builder.take();
}

TEST(Stepper, RunsEveryStepOncePerPieceInOrder) {
  const Schedule schedule = twoSteps();
  Recorder machine;
  LaneCursor cursor;
  const Advance advanced = advance(view(schedule), 0, cursor, machine);
  EXPECT_EQ(advanced.state, LaneState::Done);
  EXPECT_EQ(advanced.steps, 4u);
  EXPECT_EQ(machine.log,
            (std::vector<std::string>{"lane 0 piece 0", "0:0", "0:1", "lane 0 piece 1", "1:0", "1:1"}));
  EXPECT_EQ(advance(view(schedule), 0, cursor, machine).state, LaneState::Done);
}

TEST(Stepper, ResumesAtTheOperandThatWasNotReady) {
  const Schedule schedule = twoSteps();
  Recorder machine;
  machine.blocked = {1};
  LaneCursor cursor;
  EXPECT_EQ(advance(view(schedule), 0, cursor, machine).state, LaneState::Waiting);
  EXPECT_EQ(machine.asked, 2);
  EXPECT_EQ(advance(view(schedule), 0, cursor, machine).steps, 0u);
  EXPECT_EQ(machine.asked, 3);
  EXPECT_EQ(machine.log.size(), 1u);
  machine.blocked = {};
  EXPECT_EQ(advance(view(schedule), 0, cursor, machine).state, LaneState::Done);
}

TEST(Stepper, StopsAtTheLimitAndWhereTheMachineRefuses) {
  const Schedule schedule = twoSteps();
  Recorder machine;
  LaneCursor cursor;
  EXPECT_EQ(advance(view(schedule), 0, cursor, machine, 1).steps, 1u);
  EXPECT_EQ(advance(view(schedule), 0, cursor, machine, 2).steps, 2u);
  machine.refuse = true;
  const Advance advanced = advance(view(schedule), 0, cursor, machine);
  EXPECT_EQ(advanced.state, LaneState::Failed);
  EXPECT_EQ(advanced.steps, 0u);
}

}  // namespace
}  // namespace topoccl
