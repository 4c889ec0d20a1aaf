// An independent judge of schedules: runs them on integers, in random order.
//
// It shares the stepper with the checker and nothing else: plain buffers, plain FIFOs. Where an executor may
// choose between a copy, a reference and an offered destination it tosses a coin for every message.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "schedule/goal.h"
#include "schedule/step.h"

namespace topoccl {

struct InterpretOptions {
  bool inPlace = false;
  bool share = false;  // references and offers as well as copies
  uint32_t slots = 1;
  uint64_t pieces = 3;
  uint32_t seed = 1;
};

// Runs a collective once. Returns what went wrong, or an empty string when every rank has what the goal says,
// and ranks that want the same computed it in the same way. Schedules must be valid by themselves
// (flawOfSchedule).
std::string interpret(const std::vector<Schedule>& schedules, const Goal& goal,
                      const InterpretOptions& options);

}  // namespace topoccl
