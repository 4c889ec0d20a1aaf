// A schedule on its way to being bound: its connections are made on first use, one after the other, without
// waiting for peers that come later.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "communicator/connections.h"
#include "executor/bound_schedule.h"

namespace topoccl {

// Slots and slot size of every connection of an algorithm; the same on all ranks.
struct SlotPlan {
  uint32_t slots = 0;
  uint32_t slotBytes = 0;
};

// What the settings say; 0 = nothing.
struct SlotWishes {
  uint32_t slots = 0;
  uint64_t slotBytes = 0;
  uint64_t ringBytes = 0;  // at most that many bytes of slots per ring; ignored where slotBytes is given
};

// Sizes rings so that those which one algorithm needs take at most kRingBudget of a rank's region, whatever
// the ranks.
// A ring gets a power of two of slots, and a slot takes whole granules for every chunk of a step's span.
// Throws InternalError when slots get too large, which settings do not allow.
SlotPlan planSlots(const Schedule& schedule, uint32_t sendConnections, const SlotWishes& wishes);

class OpenSchedule {
 public:
  OpenSchedule(Schedule schedule, Protocol protocol, SlotPlan slots);

  // Makes and finds connections, until all are there: then it is ready, and bound() may be used.
  void connect(Connections& connections);
  bool ready() const { return bound_.has_value(); }
  // While it isn't: a rank whose end is missing.
  int missing() const;

  BoundSchedule& bound() { return *bound_; }
  const Schedule& schedule() const { return bound_ ? bound_->schedule() : schedule_; }

  // How a buffer of `count` elements is cut. Kept from call to call: it takes a few divisions.
  const ChunkMap& chunkMap(uint64_t count, uint32_t elementBytes);

 private:
  bool connectOne(Connections& connections, size_t index);

  Schedule schedule_;  // moved into bound_ when that is made
  Protocol protocol_;
  SlotPlan slots_;
  ChunkMap map_;
  uint32_t mapElementBytes_ = 0;      // 0: map_ is not made yet
  std::vector<Endpoint*> endpoints_;  // nullptr: not there yet
  bool announced_ = false;            // this rank's own rings are made
  std::optional<BoundSchedule> bound_;
};

}  // namespace topoccl
