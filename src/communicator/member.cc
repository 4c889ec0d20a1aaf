#include "communicator/member.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/logging.h"
#include "communicator/check_call.h"
#include "communicator/describe_call.h"
#include "device/local_devices.h"
#include "kernels/sync.h"

namespace topoccl {

namespace {

// Looks before a waiter yields when every rank has a core, and yields before it sleeps. Chosen, not tuned:
// some 100 us of spinning, more than any message between cores takes.
constexpr uint32_t kSpins = 2000;
constexpr uint32_t kYields = 10;

// What `make` makes. The other ranks are told why, where it can't: they wait for this one, or for the root in
// this process to have told them what they need to see it themselves.
template <class Make>
auto orTell(Bootstrap& bootstrap, const Make& make) {
  try {
    return make();
  } catch (const Error& error) {
    bootstrap.reportAbort(error.what());
    throw;
  }
}

Fetching fetching(const Settings& settings) {
  if (settings.crossMemory == 0) return Fetching::Never;
  return settings.crossMemory == 1 ? Fetching::Always : Fetching::WhereQuicker;
}

}  // namespace

Member::Member(std::unique_ptr<Bootstrap> bootstrap, AbortFlag abort, const Settings& settings,
               const CommConfig& config, int device)
    : settings_(settings),
      config_(config),
      stopBootstrap_(std::move(abort)),
      bootstrap_(std::move(bootstrap)),
      schedules_(orTell(*bootstrap_, [&] { return ScheduleBook(rank(), ranks(), settings_, config); })),
      node_(orTell(*bootstrap_,
                   [&] {
                     return setUpNode(*bootstrap_, settings_, config, schedules_.table().hash(),
                                      stopBootstrap_.get());
                   })),
      nodeRank_(node_.places[static_cast<size_t>(rank())].nodeRank),
      watch_(node_, rank(), settings_.reportAfter),
      sends_(static_cast<size_t>(ranks())),
      receives_(static_cast<size_t>(ranks())) {
  device_ = device >= 0 ? device : nodeRank_ % localDeviceCount();
  schedules_.connectBy(
      std::make_unique<NodeConnector>(node_.memory, rank(), node_.places, fetching(settings_)));
  waitPolicy_ = waitPolicy(false);
  log(Level::Info, Subsystem::Init, config.name.empty() ? "comm" : config.name, " rank ", rank(), " nranks ",
      ranks(), " node rank ", nodeRank_, " cores ", node_.cores, " - Init COMPLETE");
}

Member::~Member() = default;

WaitPolicy Member::waitPolicy(bool besideCaller) const {
  const size_t threads = node_.nodeRanks.size() * (besideCaller ? 2 : 1);
  const bool coreEach = node_.cores == 0 || threads <= static_cast<size_t>(node_.cores);
  WaitPolicy policy{coreEach ? kSpins : 0, kYields};
  if (settings_.spin >= 0)
    policy.spins = static_cast<uint32_t>(std::min<int64_t>(settings_.spin, UINT32_MAX));
  return policy;
}

// ---- works ----

CollectiveWork Member::issue(const CollectiveCall& call) {
  const CallDescriptor descriptor = descriptorOf(call, ++calls_, history_);
  history_ = descriptor.history;
  return {*this, call, descriptor};
}

PeerWork Member::issue(const PeerCall& call) {
  uint64_t& issued = (call.sends ? sends_ : receives_)[static_cast<size_t>(call.peer)];
  return {*this, call, descriptorOf(call, ++issued)};
}

void Member::run(const CollectiveCall& call) {
  throwIfUnusable();
  CollectiveWork work = issue(call);
  run(work);
}

void Member::run(const PeerCall& call) {
  throwIfUnusable();
  if (call.peer == rank()) throw unpairedError(call.peer, call.sends, !call.sends);
  PeerWork work = issue(call);
  run(work);
}

void Member::run(std::span<const IssuedCall> calls, const Communicator& communicator) {
  throwIfUnusable();
  checkPairs(calls, communicator, rank());
  try {
    lines_.begin(calls.size());
    for (const IssuedCall& issued : calls)
      std::visit([&](const auto& call) { lines_.add(call, [this](const auto& it) { return issue(it); }); },
                 issued.call);
    queues_.clear();
    lines_.addQueues(queues_);
  } catch (const std::exception&) {
    if (lines_.count() != 0) failForMemory();  // what has a number does not run: peers wait for it
    throw;
  }
  runQueues(queues_);
}

void Member::run(MemberWork& work) {
  Work* const works[] = {&work};
  WorkQueue queue;
  queue.works = works;
  runQueues({&queue, 1});
}

void Member::runQueues(std::span<WorkQueue> queues) {
  Doorbell* bells[] = {doorbell()};
  waiter_.reset(waitPolicy_, bells, 1);
  try {
    drive(queues, waiter_);
  } catch (const Error&) {
    throw;
  } catch (const std::exception&) {
    failForMemory();
    throw;
  }
  watch_.moved();
  if (std::any_of(queues.begin(), queues.end(), [](const WorkQueue& queue) { return queue.failed; }))
    throwIfFailed();
}

unsigned char* Member::scratch(uint64_t bytes) {
  if (scratch_.size() < bytes + kGranuleBytes) scratch_.resize(bytes + kGranuleBytes);
  const auto address = reinterpret_cast<uintptr_t>(scratch_.data());
  return scratch_.data() + (kGranuleBytes - address % kGranuleBytes) % kGranuleBytes;
}

void Member::throwIfUnusable() const {
  throwIfFailed();
  if (finalized()) throw Error(Code::InvalidUsage, "the communicator was finalized");
}

// ---- set-up that follows init ----

uint64_t Member::nextShrink(const std::vector<int>& remaining) {
  const std::scoped_lock lock(shrinksMutex_);
  return ++shrinks_[remaining];
}

void Member::skipShrinks(const std::vector<int>& remaining, uint64_t count) {
  const std::scoped_lock lock(shrinksMutex_);
  uint64_t& mine = shrinks_[remaining];
  mine = std::max(mine, count);
}

std::vector<std::string> Member::allGather(const std::string& mine) {
  throwIfFailed();
  try {
    const std::scoped_lock lock(bootstrapMutex_);
    return bootstrap_->allGather(mine);
  } catch (const Error& error) {
    fail(error, Fault::Own);
    throwIfFailed();  // what came first, where another thread failed meanwhile
    throw;
  } catch (const std::exception&) {
    failForMemory();
    throw;
  }
}

// ---- life ----

void Member::finalize() {
  if (const std::optional<Error> error = asyncError()) throw Error(*error);
  if (finalized()) throw Error(Code::InvalidUsage, "the communicator was finalized before");
  storeRelease(&finalized_, 1U);
}

void Member::requestAbort() {
  aborted_ = true;
  stopBootstrap_->store(true);
  wake(*doorbell());
}

void Member::requestEnd() {
  ends_ = true;
  requestAbort();
}

void Member::leave() {
  storeRelease(&board().touch(nodeRank_).left, 1U);
  wakeNode();
  const std::scoped_lock lock(bootstrapMutex_);
  bootstrap_->leave();
}

}  // namespace topoccl
