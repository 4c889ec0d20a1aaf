#include "communicator/task_order.h"

#include <algorithm>
#include <utility>

#include "base/fork_safety.h"
#include "communicator/task.h"

namespace topoccl {

namespace {

std::mutex& mutex() {
  static constinit std::mutex all;
  return all;
}

const ForkHook kHook = ForkHook::holding<mutex>(ForkHook::Level::Outer);

}  // namespace

TaskOrder::Lock TaskOrder::lock() {
  return Lock(mutex());
}

void TaskOrder::drain() {
  Lock lock = TaskOrder::lock();
  changed_.wait(lock, [this] { return tasks_.empty(); });
}

void TaskOrder::add(std::shared_ptr<Task> task) {
  tasks_.push_back(std::move(task));
  storeRelease(&standing_, static_cast<uint32_t>(tasks_.size()));
  changed_.notify_all();
}

void TaskOrder::remove(const Task* task) {
  const auto found =
      std::find_if(tasks_.begin(), tasks_.end(), [&](const auto& it) { return it.get() == task; });
  if (found == tasks_.end()) return;
  tasks_.erase(found);
  storeRelease(&standing_, static_cast<uint32_t>(tasks_.size()));
  changed_.notify_all();
  if (!tasks_.empty()) tasks_.front()->wakeRunner();
}

}  // namespace topoccl
