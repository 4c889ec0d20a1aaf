// The numbers in docs/algorithms.md are the schedules' own.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iomanip>
#include <sstream>

#include "algorithms/emitters.h"

namespace topoccl {
namespace {

// The busiest rank's numbers.
struct Costs {
  size_t lanes = 0;
  size_t steps = 0;
  size_t sent = 0;      // messages; a broadcast is one
  size_t received = 0;  // messages
  double sentBuffers = 0;
  double receivedBuffers = 0;
  double scratchBuffers = 0;
};

Costs costsOf(const Schedule& schedule) {
  Costs costs;
  costs.lanes = schedule.lanes.size();
  costs.steps = schedule.steps.size();
  for (const Step& step : schedule.steps)
    for (uint32_t i = 0; i < step.inputCount + step.outputCount; ++i) {
      const Place place = schedule.operands[step.firstOperand + i].place;
      if (place == Place::Send) {
        ++costs.sent;
        costs.sentBuffers += step.span;
      } else if (place == Place::Receive) {
        ++costs.received;
        costs.receivedBuffers += step.span;
      }
    }
  costs.sentBuffers /= schedule.chunks;
  costs.receivedBuffers /= schedule.chunks;
  costs.scratchBuffers = static_cast<double>(schedule.scratchChunks) / schedule.chunks;
  return costs;
}

Costs worst(Costs a, const Costs& b) {
  a.lanes = std::max(a.lanes, b.lanes);
  a.steps = std::max(a.steps, b.steps);
  a.sent = std::max(a.sent, b.sent);
  a.received = std::max(a.received, b.received);
  a.sentBuffers = std::max(a.sentBuffers, b.sentBuffers);
  a.receivedBuffers = std::max(a.receivedBuffers, b.receivedBuffers);
  a.scratchBuffers = std::max(a.scratchBuffers, b.scratchBuffers);
  return a;
}

std::string rowOf(const Emitter& emitter, int ranks) {
  const std::vector<Schedule> schedules = emitAll(emitter, ranks);
  Costs costs;
  for (const Schedule& schedule : schedules) costs = worst(costs, costsOf(schedule));
  std::ostringstream row;
  row << std::fixed << std::setprecision(2) << "| " << nameOf(emitter) << " | " << ranks << " | "
      << schedules[0].chunks << " | " << costs.lanes << " | " << costs.steps << " | " << costs.sent << " | "
      << costs.received << " | " << costs.sentBuffers << " | " << costs.receivedBuffers << " | "
      << costs.scratchBuffers << " | " << schedules[0].minSlots << " |";
  return row.str();
}

TEST(Docs, StateWhatTheSchedulesCost) {
  std::ifstream file(TOPOCCL_DOCS "/algorithms.md");
  ASSERT_TRUE(file) << "docs/algorithms.md is missing";
  std::stringstream text;
  text << file.rdbuf();
  for (const Emitter& emitter : algorithmRows())
    for (const int ranks : {2, 8, 13}) {
      const std::string row = rowOf(emitter, ranks);
      EXPECT_NE(text.str().find(row + "\n"), std::string::npos) << "the table lacks this row:\n" << row;
    }
}

}  // namespace
}  // namespace topoccl
