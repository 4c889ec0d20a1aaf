// The checker: proves that the schedules of all ranks of one collective do what the collective promises.
//
// It runs them once under the stepper with symbols in place of numbers. One run stands for all interleavings:
// lanes are sequential programs and connections FIFOs with one sender, so that what a lane receives does not
// depend on timing (a Kahn network), provided that accesses to the same memory are ordered by data flow,
// which vector clocks prove. It proves:
//
//   ends       both ends of every connection know it and use it from one lane each; slots arrive with the
//              chunk, piece and span that the receiving step expects; nothing is left in flight
//   memory     chunks and scratch within bounds, and there; nothing is read before it is written; in place,
//              `in` is not read after it was overwritten
//   races      overlapping accesses by different lanes or ranks, one of them a write, are ordered by data
//              flow; freed slots don't count as order, since with more slots the sender would not have waited
//   result     every out chunk is the sum of the contributions wanted, each exactly once, with the
//              pre-multiplier applied once to each and `final` once to the sum; ranks that want the same
//              result compute the same expression, hence the same bits
//   deadlock   none with minSlots slots per connection (more slots then are fine too)
//
// over minSlots + 2 pieces (the last of which is empty in half of the chunks) and two works back to back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/goal.h"
#include "schedule/step.h"

namespace topoccl {

// What a full slot holds. Each proves a freedom that executors may take, message by message.
enum class Sharing : uint8_t {
  Copies,      // the data
  References,  // a step that only sends on what lies in `in` or `out` may send a reference: the data is read
               // when the receiver performs its step, and the work ends when all references are freed
  Offers,      // and a step that only stores what it receives in `out` may offer its destination from the
               // beginning of the work: the data is written there when the sender performs its step
};

struct CheckOptions {
  bool inPlace = false;
  Sharing sharing = Sharing::Copies;
  uint32_t slots = 0;         // per connection; 0: minSlots
  uint64_t pieces = 0;        // 0: slots + 2
  int works = 2;              // one after the other
  bool unequalChunks = true;  // the last piece of odd chunks is empty
};

struct Verdict {
  bool ok = true;
  std::string message;  // which rank, lane and step, and why; empty if ok
  uint64_t steps = 0;   // performed
};

// schedules[rank]. Never throws; too large a collective to check is not ok.
Verdict check(const std::vector<Schedule>& schedules, const Goal& goal, const CheckOptions& options);

// check() in (where the goal allows it) and out of place, with every way of sharing.
Verdict prove(const std::vector<Schedule>& schedules, const Goal& goal);

}  // namespace topoccl
