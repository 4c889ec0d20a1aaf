// A schedule bound to connections: what a rank needs to run one kind of call again and again without
// allocating. Made on first use, kept by the communicator, used by one driver at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/combine_args.h"
#include "kernels/memory_machine.h"
#include "schedule/step.h"
#include "schedule/stepper.h"

namespace topoccl {

// Moves data on the calling thread.
struct HostMover {
  CombineFunction function = nullptr;
  void combine(const CombineArgs& args) const { function(args); }
  void copy(const CombineArgs& args) const { hostCopy(args); }
};

enum class Progress : uint8_t { Moved, Waiting, Done, Failed };

class BoundSchedule {
 public:
  // `endpoints[i]` belongs to schedule.connections[i]. Other schedules of this rank may use them too, as long
  // as never two that run at a time share one.
  BoundSchedule(Schedule schedule, std::vector<Endpoint*> endpoints);
  BoundSchedule(const BoundSchedule&) = delete;
  BoundSchedule& operator=(const BoundSchedule&) = delete;

  const Schedule& schedule() const { return schedule_; }

  // Begins a call. The plan must not be running.
  void start(const CallContext& context, CombineFunction combine);

  // Advances every lane as far as it goes. After Failed only failure() may be called.
  Progress advance();

  const MachineFailure& failure() const { return machine_.failure(); }
  // Changes whenever a lane has moved.
  uint64_t progress() const;
  uint64_t call() const { return machine_.context().call; }

  // The first thing an unfinished lane waits for; lane is UINT32_MAX when it is a peer that still reads this
  // rank's buffers.
  struct Wait {
    uint32_t lane = UINT32_MAX;
    uint32_t step = 0;
    uint64_t piece = 0;
    Place place = Place::Receive;
    uint32_t connection = 0;
    int peer = -1;  // rank that must act
  };
  Wait waiting() const;

  // Whom it waits for: a doorbell whose owner must act first; nullptr if that owner never sleeps.
  const Doorbell* blocker() const;

 private:
  Progress finishing();
  int slowestReader(uint32_t connection, uint64_t message) const;
  void planOffers();
  void planReferences();

  Schedule schedule_;
  ScheduleView view_;
  std::vector<Endpoint*> endpoints_;
  std::vector<LaneCursor> cursors_;
  std::vector<uint8_t> laneDone_;
  std::vector<std::vector<uint32_t>> offerChunks_;  // per connection
  std::vector<uint32_t> receiving_;                 // direct connections this rank receives from ...
  std::vector<uint32_t> offering_;                  // ... and those of them with offers
  std::vector<uint32_t> referencing_;               // connections this rank sends on
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  uint32_t lanesLeft_ = 0;
  MemoryMachine<SoloGroup, HostMover> machine_;
};

}  // namespace topoccl
