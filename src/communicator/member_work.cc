#include "communicator/member_work.h"

#include <exception>

#include "communicator/describe_call.h"
#include "communicator/member.h"

namespace topoccl {

BoundSchedule* MemberWork::open() {
  try {
    OpenSchedule* const schedule = prepare();
    return schedule == nullptr ? nullptr : &schedule->bound();
  } catch (const std::exception& error) {
    member_->failBy(error);  // peers wait for this rank's part
    throw;
  }
}

void MemberWork::failed(const BoundSchedule& running) {
  member_->slotMismatch(*this, running);
}

bool MemberWork::giveUp(const BoundSchedule* running, bool stalled) {
  try {
    return member_->mustGiveUp(*this, running, stalled);
  } catch (const std::exception& error) {
    member_->failBy(error);  // it can't tell how the others are
    return true;
  }
}

bool MemberWork::stuck(const BoundSchedule* running, std::chrono::milliseconds limit) const {
  const auto now = std::chrono::steady_clock::now();
  const uint64_t progress = progressOf(running);
  if (movedAt_ == std::chrono::steady_clock::time_point{} || progress != progress_) movedAt_ = now;
  progress_ = progress;
  return now - movedAt_ >= limit;
}

std::string MemberWork::text() const {
  return describe(descriptor_);
}

WaitEntry MemberWork::waiting(const BoundSchedule* running) const {
  WaitEntry entry;
  entry.call = descriptor_;
  entry.peer = missing_;
  if (running == nullptr) return entry;
  const BoundSchedule::Wait wait = running->waiting();
  entry.peer = wait.peer;
  entry.what = wait.lane == UINT32_MAX        ? Awaited::Reader
               : wait.place == Place::Receive ? Awaited::Data
                                              : Awaited::Slot;
  entry.lane = wait.lane;
  entry.step = wait.step;
  entry.piece = wait.piece;
  return entry;
}

OpenSchedule* MemberWork::whenReady(OpenSchedule& schedule) {
  if (schedule.ready()) return &schedule;
  missing_ = schedule.missing();
  return nullptr;
}

void MemberWork::setBuffers(OpenSchedule& open, uint64_t count, DataType type) {
  context = {};
  context.elementBytes = static_cast<uint32_t>(elementBytes(type));
  context.map = open.chunkMap(count, context.elementBytes);
  context.guard = member_->guard();
}

}  // namespace topoccl
