// Host streams: a thread each, which runs tasks in the order in which they were issued on it, while their
// callers go on. The C boundary and communicators know one by a handle, a number that is never used again.
#pragma once

#include <memory>
#include <optional>

#include "base/error.h"
#include "communicator/task_order.h"

namespace topoccl {

class HostStream {
 public:
  // Starts its thread; throws SystemError where none can be made. The thread ends when nobody has the stream
  // any more: neither a user, nor a call that is collected, nor a task.
  static std::shared_ptr<HostStream> start();

  // Waits for what was issued before. Throws the first error, in order of issue, since the last call; all
  // threads that wait at the same time get it, then it is forgotten.
  void synchronize();
  // Throws InProgress while something runs or is to run, else what synchronize() would.
  void query() const;

  TaskOrder& order() { return order_; }
  void keep(const Error& error, uint64_t task);  // of the task with that number; with the orders' lock

 private:
  void close();
  void work();
  std::shared_ptr<Task> nextTask();
  bool mayBegin() const;

  TaskOrder order_;
  bool closed_ = false;
  std::optional<Error> error_, forgotten_;
  uint64_t errorsTask_ = 0;
  uint64_t forgettings_ = 0;  // how often an error_ became the forgotten_
};

// Streams of the user. Each throws InvalidArgument for a handle that is none, or that was destroyed.
void* createStream();
std::shared_ptr<HostStream> streamOf(const void* handle);
void destroyStream(const void* handle);

}  // namespace topoccl
