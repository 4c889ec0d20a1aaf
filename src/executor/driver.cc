#include "executor/driver.h"

#include <chrono>
#include <exception>

namespace topoccl {

namespace {

// Takes the queue a step further, at most to the end of its current work. Returns whether anything happened.
bool step(WorkQueue& queue) {
  Work& work = *queue.works[queue.current];
  bool moved = false;
  if (queue.running == nullptr) {
    queue.running = work.open();
    if (queue.running == nullptr) return false;
    queue.running->start(work.context, work.combine);
    moved = true;
  }
  switch (queue.running->advance()) {
    case Progress::Waiting:
      return moved;
    case Progress::Moved:
      return true;
    case Progress::Failed:
      work.failed(*queue.running);
      queue.failed = true;
      return true;
    case Progress::Done:
      queue.running = nullptr;
      ++queue.current;
      return true;
  }
  return moved;
}

// When works are to be asked whether they give up although something moves.
class Busy {
 public:
  bool wantsCheck() {
    if (++moves_ % kMovesPerLook != 0) return false;
    const Clock::time_point now = Clock::now();
    if (now < next_) return false;
    const bool first = next_ == Clock::time_point{};
    next_ = now + kLongestSleep;
    return !first;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr uint32_t kMovesPerLook = 16;  // at the clock

  uint32_t moves_ = 0;
  Clock::time_point next_{};
};

void askAll(std::span<WorkQueue> queues, bool stalled) {
  for (WorkQueue& queue : queues) {
    if (queue.finished() || !queue.works[queue.current]->giveUp(queue.running, stalled)) continue;
    queue.failed = true;
    if (queue.ended) queue.ended();
  }
}

}  // namespace

void drive(std::span<WorkQueue> queues, Waiter& waiter) {
  struct Finish {
    Waiter& waiter;
    ~Finish() { waiter.finish(); }
  } const finish{waiter};
  std::exception_ptr thrown;
  Busy busy;
  for (;;) {
    bool moved = false;
    WorkQueue* waiting = nullptr;
    for (WorkQueue& queue : queues) {
      if (queue.finished()) continue;
      try {
        moved |= step(queue);
      } catch (...) {
        queue.failed = true;
        if (!thrown) thrown = std::current_exception();
      }
      if (!queue.finished())
        waiting = &queue;
      else if (queue.ended)
        queue.ended();
    }
    if (waiting == nullptr) break;
    if (moved) {
      waiter.moved();
      if (busy.wantsCheck()) askAll(queues, false);
      continue;
    }
    const bool look = waiting->running != nullptr && waiter.wantsBlocker();
    if (waiter.idle(look ? waiting->running->blocker() : nullptr)) askAll(queues, true);
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace topoccl
