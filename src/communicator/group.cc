#include "communicator/group.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/fork_safety.h"
#include "base/limits.h"
#include "base/signals.h"

namespace topoccl {

namespace {

struct Init {
  std::function<void()> run;
  std::shared_ptr<std::atomic<bool>> abort;
  const Communicator* parent;  // nullptr: none
};

struct PendingGroup {
  int depth = 0;
  std::vector<Init> inits;
  std::vector<IssuedCall> calls;
  std::optional<Error> refused;
  bool outOfMemory = false;  // refused too
  uint32_t generation = processGeneration();
};

// A thread's, while its thread_local objects live: handlers of exit run after those of main's thread.
thread_local bool threadEnds = false;
struct GroupOfThread {
  PendingGroup group;
  ~GroupOfThread() { threadEnds = true; }
};

// A fork's child begins without the groups of its parent, whose calls are left alone.
PendingGroup& current() {
  thread_local GroupOfThread of;
  if (std::exchange(threadEnds, false) || of.group.generation != processGeneration())
    new (&of.group) PendingGroup;
  return of.group;
}

// What one thread runs.
using InitLine = std::vector<const Init*>;

std::vector<InitLine> linesOf(const std::vector<Init>& inits) {
  std::vector<InitLine> lines;
  for (const Init& init : inits) {
    const auto line = std::find_if(lines.begin(), lines.end(), [&](const InitLine& l) {
      return init.parent != nullptr && l.front()->parent == init.parent;
    });
    if (line == lines.end())
      lines.push_back({&init});
    else
      line->push_back(&init);
  }
  return lines;
}

// Whether it goes on in the background.
bool run(const Init& init) {
  try {
    init.run();
    return false;
  } catch (const Error& error) {
    if (error.code() != Code::InProgress) throw;
    return true;
  }
}

// All lines at once: each rank's init waits for the others'. Whether some go on in the background.
bool runInits(const std::vector<Init>& inits) {
  if (inits.size() == 1) return run(inits.front());
  std::mutex mutex;
  std::exception_ptr first;
  std::atomic<bool> inBackground{false};
  const auto keep = [&] {
    const std::scoped_lock lock(mutex);
    if (!first) first = std::current_exception();
  };
  const std::vector<InitLine> lines = linesOf(inits);
  std::vector<std::jthread> threads;
  try {
    threads.reserve(lines.size());
    const SignalsBlocked blocked;
    for (const InitLine& line : lines)
      threads.emplace_back([&] {
        try {
          for (const Init* init : line)
            if (run(*init)) inBackground = true;
        } catch (...) {
          keep();
        }
      });
  } catch (const std::exception& error) {
    first = std::make_exception_ptr(
        Error(Code::SystemError, concat("cannot start thread ", threads.size() + 1, " of ", lines.size(),
                                        ": ", error.what(), limitOfThreads())));
    for (const Init& init : inits) init.abort->store(true);
  }
  threads.clear();  // joins
  if (first) std::rethrow_exception(first);
  return inBackground;
}

// The communicator of all these calls, if none has a stream, to run them at once.
Communicator* onlyOne(const std::vector<IssuedCall>& calls) {
  Communicator* const first = calls.front().communicator;
  return std::all_of(calls.begin(), calls.end(),
                     [&](const IssuedCall& it) { return it.communicator == first && it.stream == nullptr; })
             ? first
             : nullptr;
}

bool runCalls(std::vector<IssuedCall>& calls) {
  Communicator* const only = onlyOne(calls);
  if (only != nullptr && only->runTogether(calls)) return false;
  try {
    launch(std::move(calls));
    return false;
  } catch (const Error& error) {
    if (error.code() != Code::InProgress) throw;
    return true;
  }
}

// The memory of a group's calls is for the next group's.
struct KeptMemory {
  std::vector<IssuedCall>& calls;
  ~KeptMemory() {
    calls.clear();
    if (current().calls.empty()) current().calls.swap(calls);
  }
};

}  // namespace

namespace group {

bool open() {
  return current().depth > 0;
}
void addInit(std::function<void()> init, std::shared_ptr<std::atomic<bool>> abort,
             const Communicator* parent) {
  current().inits.push_back({std::move(init), std::move(abort), parent});
}
void addCall(IssuedCall call) {
  if (!open()) return launch({std::move(call)});
  current().calls.push_back(std::move(call));
}

void refuse(const Error& error) {
  if (open() && !current().refused) current().refused = error;
}

void refuseForMemory() noexcept {
  if (open()) current().outOfMemory = true;
}

void start() {
  ++current().depth;
}

void end() {
  PendingGroup& group = current();
  if (group.depth == 0)
    throw Error(Code::InvalidUsage, "this thread has no group open: ncclGroupStart comes first");
  if (--group.depth > 0) return;
  PendingGroup ended = std::exchange(group, PendingGroup{});
  if (ended.refused) throw Error(*ended.refused);
  if (ended.outOfMemory) throw std::bad_alloc();
  bool inBackground = !ended.inits.empty() && runInits(ended.inits);
  const KeptMemory kept{ended.calls};
  if (!ended.calls.empty()) inBackground |= runCalls(ended.calls);
  if (inBackground) throw Error(Code::InProgress, "the group is in progress");
}

}  // namespace group
}  // namespace topoccl
