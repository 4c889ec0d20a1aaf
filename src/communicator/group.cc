#include "communicator/group.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

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
};

PendingGroup& current() {
  thread_local PendingGroup group;
  return group;
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

// All lines at once: each rank's init waits for the others'.
void runInits(const std::vector<Init>& inits) {
  if (inits.size() == 1) return inits.front().run();
  std::mutex mutex;
  std::exception_ptr first;
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
          for (const Init* init : line) init->run();
        } catch (...) {
          keep();
        }
      });
  } catch (const std::exception& error) {
    first =
        std::make_exception_ptr(Error(Code::SystemError, concat("cannot start thread ", threads.size() + 1,
                                                                " of ", lines.size(), ": ", error.what())));
    for (const Init& init : inits) init.abort->store(true);
  }
  threads.clear();  // joins
  if (first) std::rethrow_exception(first);
}

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

void start() {
  ++current().depth;
}

void end() {
  PendingGroup& group = current();
  if (group.depth == 0) throw Error(Code::InvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--group.depth > 0) return;
  PendingGroup ended = std::exchange(group, PendingGroup{});
  if (ended.refused) throw Error(*ended.refused);
  if (!ended.inits.empty()) runInits(ended.inits);
  if (!ended.calls.empty()) launch(std::move(ended.calls));
}

}  // namespace group
}  // namespace topoccl
