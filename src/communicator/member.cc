#include "communicator/member.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "base/logging.h"
#include "device/local_devices.h"
#include "kernels/sync.h"

namespace topoccl {

namespace {

// Looks before a waiter yields when every rank has a core, and yields before it sleeps. Chosen, not tuned:
// some 100 us of spinning, more than any message between cores takes.
constexpr uint32_t kSpins = 2000;
constexpr uint32_t kYields = 10;
uint64_t packPoison(int nodeRank, Code code) {
  return static_cast<uint64_t>(nodeRank + 1) | static_cast<uint64_t>(code) << 32;
}

}  // namespace

Member::Member(std::unique_ptr<Bootstrap> bootstrap, AbortFlag abort, const Settings& settings,
               const CommConfig& config, int device)
    : settings_(settings),
      config_(config),
      stopBootstrap_(std::move(abort)),
      bootstrap_(std::move(bootstrap)),
      schedules_(rank(), ranks(), settings_, config),
      node_(setUpNode(*bootstrap_, settings_, config, schedules_.table().hash(), stopBootstrap_.get())),
      sends_(static_cast<size_t>(ranks())),
      receives_(static_cast<size_t>(ranks())) {
  nodeRank_ = node_.places[static_cast<size_t>(rank())].nodeRank;
  device_ = device >= 0 ? device : nodeRank_ % localDeviceCount();
  schedules_.connectBy(std::make_unique<NodeConnector>(node_.memory, rank(), node_.places));
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
  return {*this, call, ++calls_};
}

PeerWork Member::issue(const PeerCall& call) {
  return {*this, call, ++(call.sends ? sends_ : receives_)[static_cast<size_t>(call.peer)]};
}

void Member::run(const CollectiveCall& call) {
  throwIfUnusable();
  CollectiveWork work = issue(call);
  run(work);
}

void Member::run(const PeerCall& call) {
  throwIfUnusable();
  PeerWork work = issue(call);
  run(work);
}

void Member::run(MemberWork& work) {
  Work* const works[] = {&work};
  Doorbell* bells[] = {doorbell()};
  WorkQueue queue;
  queue.works = works;
  waiter_.reset(waitPolicy_, bells, 1);
  try {
    drive({&queue, 1}, waiter_);
  } catch (const Error&) {
    throw;
  } catch (const std::exception&) {
    failForMemory();
    throw;
  }
  if (queue.failed) throwIfFailed();
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

// ---- failures ----

bool Member::mustGiveUp(MemberWork& work, const BoundSchedule* running, bool stalled) {
  if (aborted_) {
    fail(Code::InvalidUsage, concat("rank ", rank(), ": the communicator was aborted during ", work.text()));
    return true;
  }
  // First: who disagrees is told by the others that they gave up.
  if (const std::optional<Error> obstacle = work.obstacle(running, stalled)) {
    fail(obstacle->code(), obstacle->what());
    return true;
  }
  if (peerFailed()) return true;
  if (settings_.collectiveTimeout.count() > 0 && work.stuck(running, settings_.collectiveTimeout)) {
    fail(Code::RemoteError,
         concat("rank ", rank(), ": ", work.text(), " did not move for ", settings_.collectiveTimeout.count(),
                " ms (TOPOCCL_COLLECTIVE_TIMEOUT); ", waitText(running)));
    return true;
  }
  return false;
}

// What a work waits for, in words.
std::string Member::waitText(const BoundSchedule* running) const {
  if (running == nullptr) return "waiting for a peer to begin the call";
  const BoundSchedule::Wait wait = running->waiting();
  const Connection& connection = running->schedule().connections[wait.connection];
  if (wait.lane == UINT32_MAX)
    return concat("waiting for rank ", connection.readers.front(), " to stop reading");
  std::string text = concat("lane ", wait.lane, " step ", wait.step, " piece ", wait.piece, " waits for ");
  if (wait.place == Place::Receive) return text + concat("data from rank ", connection.from);
  return text + concat("rank ", connection.readers.front(), " to free a slot");
}

bool Member::peerFailed() {
  const uint64_t poison = loadAcquire(node_.memory->poison());
  const std::optional<PeerFailure> reported = reportedFailure();
  if (reported) {
    fail(Code::RemoteError,
         concat("rank ", rank(), ": rank ", reported->rank, " failed: ", reported->reason));
    return true;
  }
  if (poison == 0) return false;
  const auto culprit = static_cast<uint32_t>(poison) - 1;
  const auto peer = culprit < node_.nodeRanks.size() ? node_.nodeRanks[culprit] : -1;
  fail(static_cast<Code>(poison >> 32) == Code::InvalidUsage ? Code::RemoteError
                                                             : static_cast<Code>(poison >> 32),
       concat("rank ", rank(), ": rank ", peer, " gave up on this communicator"));
  return true;
}

// Nothing while another thread is in an allGather, which learns of failures itself.
std::optional<PeerFailure> Member::reportedFailure() const {
  const std::unique_lock lock(bootstrapMutex_, std::try_to_lock);
  return lock ? bootstrap_->failure() : std::nullopt;
}

std::vector<std::string> Member::allGather(const std::string& mine) {
  throwIfFailed();
  try {
    const std::scoped_lock lock(bootstrapMutex_);
    return bootstrap_->allGather(mine);
  } catch (const Error& error) {
    fail(error.code(), concat("rank ", rank(), ": ", error.what()));
    throwIfFailed();  // what came first, where another thread failed meanwhile
    throw;
  } catch (const std::exception&) {
    failForMemory();
    throw;
  }
}

Code Member::asyncError() const {
  const Code own = failure().code;
  if (own != Code::Success) return own;
  const bool peers = loadAcquire(node_.memory->poison()) != 0 || reportedFailure().has_value();
  return peers ? Code::RemoteError : Code::Success;
}

// Peers in the same collective by number must have called the same; their boards say what they called. One
// that said goodbye without having begun this call will never come.
std::optional<Error> Member::disagreement(const CallDescriptor& mine) const {
  for (size_t peer = 0; peer < node_.nodeRanks.size(); ++peer) {
    const int other = node_.nodeRanks[peer];
    const bool left = hasLeft(other);  // before the look at its last call
    const CallDescriptor theirs = node_.memory->posted(static_cast<int>(peer));
    if (theirs.number == mine.number && !(theirs == mine))
      return Error(Code::InvalidUsage, concat("ranks disagree: rank ", rank(), " called ", describe(mine),
                                              "; rank ", other, " called ", describe(theirs)));
    if (left && theirs.number < mine.number)
      return Error(Code::RemoteError, concat("rank ", rank(), ": rank ", other,
                                             " destroyed its communicator before ", describe(mine)));
  }
  return std::nullopt;
}

bool Member::hasLeft(int rank) const {
  const int nodeRank = node_.places[static_cast<size_t>(rank)].nodeRank;
  return nodeRank >= 0 && loadAcquire(&node_.memory->line(nodeRank).touch.left) != 0;
}

void Member::slotMismatch(MemberWork& work, const BoundSchedule& running) {
  const MachineFailure& failure = running.failure();
  if (failure.poisoned && peerFailed()) return;
  if (const std::optional<Error> obstacle = work.obstacle(&running, false))
    return fail(obstacle->code(), obstacle->what());
  const Connection& connection = running.schedule().connections[failure.connection];
  // A slot of another call: ranks disagree. Of this one: the library is at fault.
  fail(failure.found.call == running.call() ? Code::InternalError : Code::InvalidUsage,
       concat("rank ", rank(), ": ", work.text(), ": rank ", connection.from, " sent chunk ",
              failure.found.chunk, " (", failure.found.bytes, " bytes) where chunk ", failure.expectedChunk,
              " (", failure.expectedBytes, " bytes) was expected",
              failure.found.call == running.call() ? "" : ", of another call"));
}

void Member::fail(Code code, std::string message) {
  bool first = false;
  {
    // Together: who comes next finds the failure, and the poison.
    const std::scoped_lock lock(failureMutex_);
    first = failed_ == 0;
    if (first) failure_ = {code, std::move(message)};
    compareExchange(node_.memory->poison(), uint64_t{0}, packPoison(nodeRank_, code));
    storeRelease(&failed_, 1U);
  }
  fullFence();  // before the look at who touches
  if (first) wakeNode();
  waitUntilUntouched();
  if (first) tellOthers();
}

void Member::failForMemory() noexcept {
  try {
    fail(Code::SystemError, "out of memory");  // so short a text takes none
  } catch (const std::exception&) {
  }
}

void Member::tellOthers() {
  std::string message;
  try {
    message = failure().message;
    log(Level::Warn, Subsystem::Coll, message);
  } catch (const std::bad_alloc&) {  // they are told all the same
  }
  std::unique_lock lock(bootstrapMutex_, std::try_to_lock);
  if (!lock) {
    stopBootstrap_->store(true);  // ends an allGather of another thread
    lock.lock();
  }
  bootstrap_->reportAbort(message);
}

void Member::wakeNode() const {
  for (size_t peer = 0; peer < node_.nodeRanks.size(); ++peer)
    wake(node_.memory->line(static_cast<int>(peer)).doorbell);
}

// Peers of this process may be in the middle of a piece that they read from or write to this rank's buffers.
// The poison is set, so none begins another.
void Member::waitUntilUntouched() const {
  for (size_t peer = 0; peer < node_.nodeRanks.size(); ++peer) {
    if (!node_.places[static_cast<size_t>(node_.nodeRanks[peer])].sameProcess) continue;
    if (static_cast<int>(peer) == nodeRank_) continue;
    while (loadAcquire(&node_.memory->line(static_cast<int>(peer)).touch.touching) != 0) ::sched_yield();
  }
}

Member::Failure Member::failure() const {
  const std::scoped_lock lock(failureMutex_);
  return failure_;
}

void Member::throwIfFailed() const {
  if (loadAcquire(&failed_) == 0) return;
  const Failure failure = this->failure();
  if (failure.code != Code::Success) throw Error(failure.code, failure.message);
}

// ---- life ----

void Member::finalize() {
  throwIfFailed();
  if (finalized()) throw Error(Code::InvalidUsage, "the communicator was finalized before");
  storeRelease(&finalized_, 1U);
}

void Member::requestAbort() {
  aborted_ = true;
  stopBootstrap_->store(true);
  wake(line().doorbell);
}

void Member::leave() {
  storeRelease(&line().touch.left, 1U);
  wakeNode();
  const std::scoped_lock lock(bootstrapMutex_);
  bootstrap_->leave();
}

}  // namespace topoccl
