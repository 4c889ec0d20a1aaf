#include "communicator/process.h"

#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <utility>

namespace topoccl {

namespace {

struct SharedMemory {
  std::shared_ptr<NodeMemory> memory;
  std::exception_ptr error;
  bool settled = false;
  int usersLeft = 0;
};

struct Process {
  std::mutex mutex;
  std::string lastError;
  std::condition_variable settled;
  std::map<uint64_t, SharedMemory> memories;  // entries live until the last of their users has come
};

Process& process() {
  static auto* const state = new Process;  // outlives every thread, also at exit
  return *state;
}

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
                                             const Wait& wait) {
  Process& state = process();
  std::shared_ptr<NodeMemory> made;
  std::exception_ptr error;
  if (make) try {
      made = make();
    } catch (...) {
      error = std::current_exception();
    }

  std::unique_lock lock(state.mutex);
  SharedMemory& entry = state.memories.try_emplace(key).first->second;
  if (make) {
    entry = {std::move(made), error, true, users};
    state.settled.notify_all();
  }
  while (!entry.settled) {
    state.settled.wait_for(lock, kWaitSlice);
    if (entry.settled) break;
    throwIfOver(wait, "waiting for this process's first rank to share its node's memory");
  }
  const SharedMemory result = entry;
  if (--entry.usersLeft == 0) state.memories.erase(key);
  if (result.error) std::rethrow_exception(result.error);
  return result.memory;
}

}  // namespace topoccl
