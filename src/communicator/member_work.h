// What the calls of a rank have in common on their way through the driver.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "communicator/open_schedule.h"
#include "executor/driver.h"
#include "kernels/types.h"
#include "transport/board.h"

namespace topoccl {

class Member;

class MemberWork : public Work {
 public:
  MemberWork(Member& member, const CallDescriptor& descriptor) : member_(&member), descriptor_(descriptor) {}

  BoundSchedule* open() final;
  void failed(const BoundSchedule& running) final;
  bool giveUp(const BoundSchedule* running, bool stalled) final;

  const CallDescriptor& descriptor() const { return descriptor_; }
  // "all_reduce #17 float32 x 1000 sum": how messages name the call.
  std::string text() const;

  // What it waits for; `running` is nullptr while it is not open.
  WaitEntry waiting(const BoundSchedule* running) const;

  // What makes it impossible to complete, as far as that can be seen from here; nothing if it may complete.
  // With `stalled` nothing of this rank's calls moves.
  virtual std::optional<Error> obstacle(const BoundSchedule* running, bool stalled) = 0;

  // Changes whenever a lane has moved, or the work is opened.
  static uint64_t progressOf(const BoundSchedule* running) {
    return running == nullptr ? 0 : running->progress() + 1;
  }

  // Whether nothing has moved for that long, as far as this was asked.
  bool stuck(const BoundSchedule* running, std::chrono::milliseconds limit) const;

 protected:
  // Below this a message is copied sooner than its reader can say that it is done with a reference.
  static constexpr uint64_t kDirectBytes = 16 << 10;
  // Likewise below this, between processes.
  static constexpr uint64_t kAttachBytes = 64 << 10;

  // The schedule, with `context` filled in; nullptr while a peer has not made its end. Throws Error.
  virtual OpenSchedule* prepare() = 0;

  // Itself when all its connections are there, else nullptr.
  OpenSchedule* whenReady(OpenSchedule& schedule);

  Member& member() const { return *member_; }
  void setBuffers(OpenSchedule& open, uint64_t count, DataType type);

 private:
  Member* member_;
  CallDescriptor descriptor_;
  int missing_ = -1;                                         // whose end of a connection
  mutable uint64_t progress_ = 0;                            // when stuck() was last asked ...
  mutable std::chrono::steady_clock::time_point movedAt_{};  // ... and when that was new
};

}  // namespace topoccl
