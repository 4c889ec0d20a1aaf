#include "communicator/host_stream.h"

#include <unistd.h>

#include <bit>
#include <cstdint>
#include <map>
#include <utility>

#include "base/fork_safety.h"
#include "bootstrap/service_thread.h"
#include "communicator/task.h"

namespace topoccl {

namespace {

class Streams {
 public:
  static Streams& instance() {
    static auto* const streams = new Streams;  // outlives every user, also at exit
    return *streams;
  }

  static std::mutex& mutex() { return instance().mutex_; }

  void* add(std::shared_ptr<HostStream> stream) {
    const std::scoped_lock lock(mutex_);
    const uintptr_t handle = next_++ * kStride;
    rows_.emplace(handle, Row{std::move(stream), ::getpid(), processGeneration()});
    return std::bit_cast<void*>(handle);
  }

  std::shared_ptr<HostStream> find(const void* handle) {
    const std::scoped_lock lock(mutex_);
    return row(handle)->second.stream;
  }

  std::shared_ptr<HostStream> take(const void* handle) {
    const std::scoped_lock lock(mutex_);
    const auto found = row(handle);
    std::shared_ptr<HostStream> stream = std::move(found->second.stream);
    rows_.erase(found);
    return stream;
  }

 private:
  // Handles are multiples of it, as a pointer would be; CUDA's own numbers for streams are 1 and 2.
  static constexpr uintptr_t kStride = 16;

  struct Row {
    std::shared_ptr<HostStream> stream;
    pid_t process;  // that made it
    uint32_t generation;
  };

  std::map<uintptr_t, Row>::iterator row(const void* handle) {
    if (handle == nullptr)
      throw Error(Code::InvalidArgument,
                  "stream is NULL; it must be of topocclStreamCreate and not destroyed");
    const auto found = rows_.find(reinterpret_cast<uintptr_t>(handle));
    if (found != rows_.end() && found->second.generation != processGeneration())
      refuseAfterFork(concat("stream is ", handle), found->second.process,
                      "make one here with topocclStreamCreate");
    if (found == rows_.end())
      throw Error(Code::InvalidArgument,
                  concat("stream is ", handle,
                         "; on a CPU it must be NULL or of topocclStreamCreate and not destroyed"));
    return found;
  }

  std::mutex mutex_;
  std::map<uintptr_t, Row> rows_;
  uintptr_t next_ = 1;
};

const ForkHook kHook = ForkHook::holding<Streams::mutex>(ForkHook::Level::Outer);

}  // namespace

std::shared_ptr<HostStream> HostStream::start() {
  auto own = std::make_shared<HostStream>();  // the thread's
  startServiceThread("topoccl-stream", [own] { own->work(); });
  HostStream* const stream = own.get();
  return {stream, [own = std::move(own), home = processGeneration()](HostStream* unused) {
            if (processGeneration() == home) unused->close();  // its thread is only there
          }};
}

void HostStream::close() {
  const TaskOrder::Lock lock = TaskOrder::lock();
  closed_ = true;
  order_.changed().notify_all();
}

bool HostStream::mayBegin() const {
  const Task* const first = order_.first();
  return first != nullptr && first->runsOn(*this) && first->mayBegin();
}

// Tasks are released without the lock: they may be the last to hold memory, and this stream.
void HostStream::work() {
  while (const std::shared_ptr<Task> task = nextTask()) {
    task->run();
    task->end();
  }
}

// nullptr when it is closed.
std::shared_ptr<Task> HostStream::nextTask() {
  TaskOrder::Lock lock = TaskOrder::lock();
  order_.changed().wait(lock, [this] { return mayBegin() || closed_; });
  if (order_.empty()) return nullptr;
  order_.first()->begin();
  return order_.first()->shared_from_this();
}

void HostStream::synchronize() {
  TaskOrder::Lock lock = TaskOrder::lock();
  const uint64_t last = Task::lastNumber(), forgettings = forgettings_;
  order_.changed().wait(lock, [&] { return order_.empty() || order_.first()->number() > last; });
  if (error_) {
    forgotten_ = std::exchange(error_, std::nullopt);
    ++forgettings_;
  }
  if (forgettings_ != forgettings) throw Error(*forgotten_);
}

void HostStream::query() const {
  const TaskOrder::Lock lock = TaskOrder::lock();
  if (!order_.empty()) throw Error(Code::InProgress, "the stream has calls to run");
  if (error_) throw Error(*error_);
}

void HostStream::keep(const Error& error, uint64_t task) {
  if (error_ && errorsTask_ < task) return;
  error_.emplace(error);
  errorsTask_ = task;
}

void* createStream() {
  return Streams::instance().add(HostStream::start());
}

std::shared_ptr<HostStream> streamOf(const void* handle) {
  return Streams::instance().find(handle);
}

void destroyStream(const void* handle) {
  Streams::instance().take(handle);
}

}  // namespace topoccl
