// The one loop that runs schedules. It never waits: it advances a lane as far as its connections allow and
// returns. Memory (host threads or a CUDA block), symbols (the checker) and, later, a clock (the simulator)
// are machines under it.
//
// A Machine has
//   uint64_t pieces()                              how often each lane runs through its steps
//   bool ready(const Operand&)                     a Receive has a full slot / a Send has a free one
//   bool perform(const Step&, const Operand* inputs, const Operand* outputs, uint64_t piece)
//                                                  moves the data, publishes and frees; false stops the lane
//   void begin(uint32_t lane, uint64_t piece)      called before a lane's first step of each piece
// ready() stays true until the step that uses the operand is performed.
#pragma once

#include <cstdint>

#include "base/portable.h"
#include "schedule/step.h"

namespace topoccl {

// Where a lane stands. `operand` counts the current step's operands already found ready.
struct LaneCursor {
  uint64_t piece = 0;
  uint32_t step = 0;
  uint32_t operand = 0;
  bool begun = false;
};

enum class LaneState : uint8_t {
  Waiting,  // the next step is not ready
  Done,     // all pieces of all steps performed
  Failed,   // the machine refused a step; it knows why
};

struct Advance {
  LaneState state;
  uint32_t steps;  // performed in this call
};

// Advances lane `laneIndex` by at most `limit` steps.
template <class Machine>
TOPOCCL_HOST_DEVICE inline Advance advance(const ScheduleView& schedule, uint32_t laneIndex,
                                           LaneCursor& cursor, Machine& machine,
                                           uint32_t limit = UINT32_MAX) {
  const Lane& lane = schedule.lanes[laneIndex];
  const uint64_t pieces = machine.pieces();
  uint32_t steps = 0;
  while (cursor.piece < pieces) {
    if (cursor.step == lane.stepCount) {
      ++cursor.piece;
      cursor.step = 0;
      cursor.begun = false;
      continue;
    }
    if (!cursor.begun) {
      machine.begin(laneIndex, cursor.piece);
      cursor.begun = true;
    }
    const Step& step = schedule.steps[lane.firstStep + cursor.step];
    const Operand* operands = schedule.operands + step.firstOperand;
    const uint32_t operandCount = step.inputCount + step.outputCount;
    for (; cursor.operand < operandCount; ++cursor.operand) {
      const Operand& operand = operands[cursor.operand];
      if ((operand.place == Place::Receive || operand.place == Place::Send) && !machine.ready(operand))
        return {LaneState::Waiting, steps};
    }
    if (steps == limit) return {LaneState::Waiting, steps};
    if (!machine.perform(step, operands, operands + step.inputCount, cursor.piece))
      return {LaneState::Failed, steps};
    ++cursor.step;
    cursor.operand = 0;
    ++steps;
  }
  return {LaneState::Done, steps};
}

}  // namespace topoccl
