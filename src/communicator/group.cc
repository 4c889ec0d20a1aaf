#include "communicator/group.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "communicator/member.h"

namespace topoccl {

namespace {

struct Call {
  Communicator* communicator;
  CollectiveCall call;
};

struct PendingGroup {
  int depth = 0;
  std::vector<std::function<void()>> inits;
  std::vector<Call> calls;
  std::optional<Error> refused;
};

PendingGroup& current() {
  thread_local PendingGroup group;
  return group;
}

// All at once: each rank's init waits for the others'.
void runInits(const std::vector<std::function<void()>>& inits) {
  if (inits.size() == 1) return inits.front()();
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::jthread> threads;
  for (const auto& init : inits)
    threads.emplace_back([&] {
      try {
        init();
      } catch (...) {
        const std::scoped_lock lock(mutex);
        if (!first) first = std::current_exception();
      }
    });
  threads.clear();  // joins
  if (first) std::rethrow_exception(first);
}

// The calls of one rank, in the order in which they were issued.
struct RankWorks {
  Communicator* communicator;
  Communicator::Operation operation;
  std::vector<CollectiveWork> works;
  std::vector<Work*> pointers;
};

// Gathers calls by rank. Throws before anything runs if a communicator died meanwhile or can't be used.
std::vector<RankWorks> gather(const std::vector<Call>& calls) {
  std::vector<RankWorks> ranks;
  for (const Call& call : calls) {
    auto rank = std::find_if(ranks.begin(), ranks.end(),
                             [&](const RankWorks& r) { return r.communicator == call.communicator; });
    if (rank == ranks.end()) {
      ranks.push_back({call.communicator, Communicator::Operation(*call.communicator), {}, {}});
      rank = ranks.end() - 1;
    }
    rank->works.push_back(rank->operation.member().issue(call.call));
  }
  for (RankWorks& rank : ranks)
    for (CollectiveWork& work : rank.works) rank.pointers.push_back(&work);
  return ranks;
}

void runCalls(const std::vector<Call>& calls) {
  const std::vector<RankWorks> ranks = gather(calls);
  std::vector<WorkQueue> queues(ranks.size());
  std::vector<Doorbell*> bells;
  WaitPolicy policy = ranks.front().operation.member().waitPolicy();
  for (size_t i = 0; i < ranks.size(); ++i) {
    const Member& member = ranks[i].operation.member();
    queues[i].works = ranks[i].pointers;
    bells.push_back(member.doorbell());
    policy.spins = std::min(policy.spins, member.waitPolicy().spins);
  }
  Waiter waiter;
  waiter.reset(policy, bells.data(), static_cast<uint32_t>(bells.size()));
  drive(queues, waiter);
  for (size_t i = 0; i < ranks.size(); ++i)
    if (queues[i].failed) ranks[i].operation.member().throwIfFailed();
}

}  // namespace

namespace group {

bool open() {
  return current().depth > 0;
}
void addInit(std::function<void()> init) {
  current().inits.push_back(std::move(init));
}
void addCall(Communicator& communicator, const CollectiveCall& call) {
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
