#include "communicator/process.h"

#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "base/fork_safety.h"
#include "communicator/communicator.h"

namespace topoccl {

namespace {

// One node memory of this process, while its users come to fetch it.
struct SharedMemory {
  std::weak_ptr<NodeMemory> memory;  // kept by its maker, then by all users
  std::exception_ptr error;
  bool settled = false;
  int arrived = 0;
};

struct Process {
  std::mutex mutex;
  std::string lastError;
  std::condition_variable settled;
  std::map<uint64_t, SharedMemory> memories;  // until the last of their users has come
};

Process& process() {
  static auto* const state = new Process;  // outlives every thread, also at exit
  return *state;
}

std::mutex& processMutex() {
  return process().mutex;
}

// A condition remembers who waits for it, and would wait for threads that are only in the parent.
const ForkHook kHook = ForkHook::holding<processMutex>(
    ForkHook::Level::Outer, [] { new (&process().settled) std::condition_variable; });

}  // namespace

std::string lastError() {
  const std::scoped_lock lock(process().mutex);
  return process().lastError;
}

void setLastError(std::string text) {
  const std::scoped_lock lock(process().mutex);
  process().lastError = std::move(text);
}

std::shared_ptr<NodeMemory> sharedNodeMemory(uint64_t key, int users,
                                             const std::function<std::shared_ptr<NodeMemory>()>& make,
                                             const std::function<void()>& check) {
  Process& state = process();
  std::shared_ptr<NodeMemory> memory;
  std::exception_ptr error;
  if (make) try {
      memory = make();
    } catch (...) {
      error = std::current_exception();
    }

  std::unique_lock lock(state.mutex);
  SharedMemory& entry = state.memories[key];
  if (make) {
    entry.memory = memory;
    entry.error = error;
    entry.settled = true;
    state.settled.notify_all();
  }
  try {
    while (!entry.settled) {
      state.settled.wait_for(lock, kWaitSlice);
      if (!entry.settled) check();
    }
    error = entry.error;
    memory = entry.memory.lock();
  } catch (...) {
    error = std::current_exception();
  }
  if (++entry.arrived == users) state.memories.erase(key);
  if (error) std::rethrow_exception(error);
  if (!memory)
    throw Error(Code::RemoteError, "the rank of this process that shared the node's memory failed");
  return memory;
}

}  // namespace topoccl
