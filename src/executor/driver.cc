#include "executor/driver.h"

#include <exception>

namespace topoccl {

namespace {

// Takes the queue as far as it goes. Returns whether anything happened.
bool step(WorkQueue& queue) {
  bool moved = false;
  while (!queue.finished()) {
    Work& work = *queue.works[queue.current];
    if (queue.running == nullptr) {
      queue.running = work.open();
      if (queue.running == nullptr) return moved;
      queue.running->start(work.context, work.combine);
      moved = true;
    }
    const Progress progress = queue.running->advance();
    if (progress == Progress::Waiting) return moved;
    if (progress == Progress::Moved) return true;
    if (progress == Progress::Failed) {
      work.failed(*queue.running);
      queue.failed = true;
      return true;
    }
    queue.running = nullptr;
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
      if (!queue.finished())
        waiting = &queue;
      else if (queue.ended)
        queue.ended();
    }
    if (waiting == nullptr) break;
    if (moved) {
      waiter.moved();
      continue;
    }
    const bool look = waiting->running != nullptr && waiter.wantsBlocker();
    if (!waiter.idle(look ? waiting->running->blocker() : nullptr)) continue;
    for (WorkQueue& queue : queues) {
      if (queue.finished() || !queue.works[queue.current]->giveUp(queue.running)) continue;
      queue.failed = true;
      if (queue.ended) queue.ended();
    }
  }
  waiter.finish();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace topoccl
