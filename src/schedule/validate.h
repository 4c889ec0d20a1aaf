// The rules that a schedule must keep by itself, without its peers: every index in range, every operand on
// a side where it makes sense. The parser and the checker both ask here; afterwards indices can be trusted.
//
// Each function returns what is wrong, or an empty string.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/step.h"

namespace topoccl {

std::string flawOfHeader(const Schedule& schedule);
std::string flawOfConnection(const Schedule& schedule, const Connection& connection);
std::string flawOfStep(const Schedule& schedule, const Step& step);

// For sets of connections: a schedule must not have two with the same key, or the ends could not tell which
// is which.
struct KeyOrder {
  bool operator()(const Connection& a, const Connection& b) const;
};

// Each end of a connection belongs to one lane: only then is the order of its messages fixed.
class ConnectionEnds {
 public:
  // Notes that `lane` uses the step's connections.
  std::string claim(const Schedule& schedule, const Step& step, uint32_t lane);

 private:
  // By connection. A rank's connection to itself has both ends here.
  std::vector<uint32_t> readerLane_, writerLane_;
};

// All of the above; the message names connection or lane and step.
std::string flawOfSchedule(const Schedule& schedule);

// "lane 0 step 2 `3: r0 + in -> s1`": how messages name a step. `step` counts within the lane.
std::string nameOfStep(const Schedule& schedule, uint32_t lane, uint32_t step);

}  // namespace topoccl
