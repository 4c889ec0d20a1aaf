#include "communicator/group.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/signals.h"
#include "communicator/member.h"

namespace topoccl {

namespace {

struct Call {
  Communicator* communicator;
  AnyCall call;
};

struct Init {
  std::function<void()> run;
  std::shared_ptr<std::atomic<bool>> abort;
  const Communicator* parent;  // nullptr: none
};

struct PendingGroup {
  int depth = 0;
  std::vector<Init> inits;
  std::vector<Call> calls;
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

// Calls of one rank that run one after the other: its collectives, or its sends to one peer, or its receives
// from one. All such lines run side by side.
struct Line {
  bool isPeers = false;
  int peer = 0;
  bool sends = false;
  std::deque<std::variant<CollectiveWork, PeerWork>> works;  // which stay where they are
  std::vector<Work*> pointers;

  bool takes(const CollectiveCall&) const { return !isPeers; }
  bool takes(const PeerCall& call) const { return isPeers && peer == call.peer && sends == call.sends; }
};

Line lineFor(const CollectiveCall&) {
  return {};
}
Line lineFor(const PeerCall& call) {
  return {true, call.peer, call.sends, {}, {}};
}

// The calls of one rank.
struct RankWorks {
  Communicator* communicator;
  std::optional<Communicator::Operation> operation;  // until the last of the works is done
  std::shared_ptr<NodeMemory> memory;                // holds the doorbell that the waiter uses to the end
  std::deque<Line> lines;
  size_t running = 0;  // lines

  template <class AnyCall>
  void issue(const AnyCall& call) {
    auto line = std::find_if(lines.begin(), lines.end(), [&](const Line& l) { return l.takes(call); });
    if (line == lines.end()) line = lines.insert(line, lineFor(call));
    line->works.emplace_back(operation->member().issue(call));
  }
};

// Gathers calls by rank and line. Throws before any of them has taken a number if a communicator died
// meanwhile or can't be used.
std::vector<RankWorks> gather(const std::vector<Call>& calls) {
  std::vector<RankWorks> ranks;
  const auto find = [&](const Call& call) {
    return std::find_if(ranks.begin(), ranks.end(),
                        [&](const RankWorks& r) { return r.communicator == call.communicator; });
  };
  for (const Call& call : calls) {
    if (find(call) != ranks.end()) continue;
    ranks.push_back({call.communicator, Communicator::Operation(*call.communicator), {}, {}});
    const Member& member = ranks.back().operation->member();
    member.throwIfUnusable();
    ranks.back().memory = member.memory();
  }
  for (const Call& call : calls) std::visit([&](const auto& it) { find(call)->issue(it); }, call.call);
  for (RankWorks& rank : ranks)
    for (Line& line : rank.lines)
      for (auto& work : line.works)
        line.pointers.push_back(std::visit([](auto& it) -> Work* { return &it; }, work));
  return ranks;
}

// How to wait for all of these ranks at once.
WaitPolicy commonPolicy(const std::vector<RankWorks>& ranks) {
  WaitPolicy policy = ranks.front().operation->member().waitPolicy();
  for (const RankWorks& rank : ranks)
    policy.spins = std::min(policy.spins, rank.operation->member().waitPolicy().spins);
  return policy;
}

void runCalls(const std::vector<Call>& calls) {
  std::vector<RankWorks> ranks = gather(calls);
  size_t lines = 0;
  for (const RankWorks& rank : ranks) lines += rank.lines.size();
  std::vector<WorkQueue> queues(lines);
  std::vector<Doorbell*> bells;
  std::optional<Error> first;
  for (RankWorks& rank : ranks) {
    bells.push_back(rank.operation->member().doorbell());
    rank.running = rank.lines.size();
    for (Line& line : rank.lines) {
      WorkQueue& queue = queues[--lines];
      queue.works = line.pointers;
      // A rank that is done may be destroyed or aborted while others go on.
      queue.ended = [&] {
        const Member::Failure failure = rank.operation->member().failure();
        if (queue.failed && !first) first.emplace(failure.code, failure.message);
        if (--rank.running == 0) rank.operation.reset();
      };
    }
  }
  Waiter waiter;
  waiter.reset(commonPolicy(ranks), bells.data(), static_cast<uint32_t>(bells.size()));
  drive(queues, waiter);
  if (first) throw Error(*first);
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
void addCall(Communicator& communicator, const AnyCall& call) {
  current().calls.push_back({&communicator, call});
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
  const PendingGroup ended = std::exchange(group, PendingGroup{});
  if (ended.refused) throw Error(*ended.refused);
  if (!ended.inits.empty()) runInits(ended.inits);
  if (!ended.calls.empty()) runCalls(ended.calls);
}

}  // namespace group
}  // namespace topoccl
