#include "executor/driver.h"

#include <exception>

namespace topoccl {

namespace {

// Takes the queue as far as it goes. Returns whether anything happened.
bool step(WorkQueue& queue) {
  bool moved = false;
  while (!queue.finished()) {
    Work& work = *queue.works[queue.current];
    if (queue.plan == nullptr) {
      queue.plan = work.open();
      if (queue.plan == nullptr) return moved;
      queue.plan->start(work.context, work.combine);
      moved = true;
    }
    const Progress progress = queue.plan->advance();
    if (progress == Progress::Waiting) return moved;
    if (progress == Progress::Moved) return true;
    if (progress == Progress::Failed) {
      work.failed(*queue.plan);
      queue.failed = true;
      return true;
    }
    queue.plan = nullptr;
    ++queue.current;
    moved = true;
  }
  return moved;
}

}  // namespace

void drive(std::span<WorkQueue> queues, Waiter& waiter) {
  std::exception_ptr thrown;
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
      if (!queue.finished()) waiting = &queue;
    }
    if (waiting == nullptr) break;
    if (moved) {
      waiter.moved();
      continue;
    }
    const bool look = waiting->plan != nullptr && waiter.wantsBlocker();
    if (!waiter.idle(look ? waiting->plan->blocker() : nullptr)) continue;
    for (WorkQueue& queue : queues)
      if (!queue.finished() && queue.works[queue.current]->giveUp(queue.plan)) queue.failed = true;
  }
  waiter.finish();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace topoccl
