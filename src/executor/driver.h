// The host driver: one thread steps the lanes of all its ranks, each rank's works in order, different ranks
// interleaved, and waits in one place when none of them can move.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "executor/bound_schedule.h"
#include "executor/waiter.h"

namespace topoccl {

// One collective call of one rank. `open()` is asked until it gives the bound schedule: connections are made
// on first use and a peer may come later, while the driver goes on with its other ranks.
class Work {
 public:
  virtual ~Work() = default;

  // The bound schedule, or nullptr when a peer has not made its end of a connection yet. Throws Error.
  virtual BoundSchedule* open() = 0;

  // It refused to go on (see BoundSchedule::failure). Reports it where the user will look.
  virtual void failed(const BoundSchedule& running) = 0;

  // Asked now and then, about once per kLongestSleep. True: give up, the reason has been reported. `running`
  // is nullptr while the work is not open yet. `stalled`: nothing of any queue moves.
  virtual bool giveUp(const BoundSchedule* running, bool stalled) = 0;

  CallContext context;
  CombineFunction combine = nullptr;
};

// The works of one rank, run one after the other. A failure ends the queue.
struct WorkQueue {
  std::span<Work* const> works;
  size_t current = 0;
  BoundSchedule* running = nullptr;  // of works[current], once it is open and started
  bool failed = false;
  std::function<void()> ended{};  // called once, when it is finished; may be empty

  bool finished() const { return failed || current == works.size(); }
};

// Runs until every queue is finished. `waiter` was reset for the doorbells of these ranks. Errors thrown by
// Work::open pass through after the queue is marked as failed; the others run on first.
void drive(std::span<WorkQueue> queues, Waiter& waiter);

}  // namespace topoccl
