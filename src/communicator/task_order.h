// In which order tasks run that don't run where they are issued. What is issued on a host stream runs in the
// order of issue, and so does what is issued on a communicator: each of these is a TaskOrder. A task stands
// in all of its communicators' and streams' orders, and runs when it is the first in all of them. It enters
// them at once, so no two can wait for each other (docs/communicator.md#streams has a picture).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>

#include "kernels/sync.h"

namespace topoccl {

class Task;

class TaskOrder {
 public:
  using Lock = std::unique_lock<std::mutex>;

  // Guards all orders together, and what tasks and streams say of them.
  static Lock lock();

  // Whether no task stands here; without the lock too.
  bool empty() const { return loadAcquire(&standing_) == 0; }
  void drain();  // waits until it is empty

  // ---- with the lock ----

  Task* first() const { return tasks_.empty() ? nullptr : tasks_.front().get(); }
  const std::list<std::shared_ptr<Task>>& tasks() const { return tasks_; }
  void add(std::shared_ptr<Task> task);
  // Wakes who waits for changes of this order, and the runner of the new first.
  void remove(const Task* task);

  std::condition_variable& changed() { return changed_; }

 private:
  std::list<std::shared_ptr<Task>> tasks_;  // takes no memory while empty, as in thousands of dead handles
  uint32_t standing_ = 0;                   // tasks_.size()
  std::condition_variable changed_;
};

}  // namespace topoccl
