#include "communicator/member.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "base/logging.h"
#include "bootstrap/messages.h"
#include "communicator/describe_call.h"
#include "device/local_devices.h"
#include "kernels/sync.h"

namespace topoccl {

namespace {

// Looks before a waiter yields when every rank has a core, and yields before it sleeps. Chosen, not tuned:
// some 100 us of spinning, more than any message between cores takes.
constexpr uint32_t kSpins = 2000;
constexpr uint32_t kYields = 10;
// A system call for each rank, whose cost grows with the ranks: each looks at some, and all together at all.
constexpr std::chrono::milliseconds kGoneEvery{200};
constexpr size_t kGoneAtOnce = 16;

uint64_t packPoison(int nodeRank, Code code) {
  return static_cast<uint64_t>(nodeRank + 1) | static_cast<uint64_t>(code) << 32;
}

// Others write there too: a failure it is in any case.
Code failureCode(uint64_t code) {
  for (const Code known : {Code::SystemError, Code::InternalError, Code::InvalidArgument, Code::InvalidUsage})
    if (code == static_cast<uint64_t>(known)) return known;
  return Code::RemoteError;
}

// What `make` makes. The other ranks are told why, where it can't: they wait for this one.
template <class Make>
auto orTell(Bootstrap& bootstrap, const Make& make) {
  try {
    return make();
  } catch (const Error& error) {
    bootstrap.reportAbort(error.what());
    throw;
  }
}

}  // namespace

Member::Member(std::unique_ptr<Bootstrap> bootstrap, AbortFlag abort, const Settings& settings,
               const CommConfig& config, int device)
    : settings_(settings),
      config_(config),
      stopBootstrap_(std::move(abort)),
      bootstrap_(std::move(bootstrap)),
      schedules_(orTell(*bootstrap_, [&] { return ScheduleBook(rank(), ranks(), settings_, config); })),
      node_(setUpNode(*bootstrap_, settings_, config, schedules_.table().hash(), stopBootstrap_.get())),
      nodeRank_(node_.places[static_cast<size_t>(rank())].nodeRank),
      watch_(node_, rank(), settings_.reportAfter),
      sends_(static_cast<size_t>(ranks())),
      receives_(static_cast<size_t>(ranks())) {
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
  watch_.moved();
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
  if (peerFailed()) return true;
  if (const std::optional<Error> obstacle = work.obstacle(running, stalled)) {
    failBy(work, *obstacle);
    return true;
  }
  if (!stalled) watch_.moved();
  if (stalled)
    if (const std::optional<Error> circle =
            watch_.look(work.waiting(running), MemberWork::progressOf(running))) {
      fail(*circle);
      return true;
    }
  if (stalled && peerGone()) return true;
  if (settings_.collectiveTimeout.count() > 0 && work.stuck(running, settings_.collectiveTimeout)) {
    fail(Code::RemoteError,
         concat("rank ", rank(), ": ", work.text(), " did not move for ", settings_.collectiveTimeout.count(),
                " ms (TOPOCCL_COLLECTIVE_TIMEOUT); ", describeWait(work.waiting(running))));
    return true;
  }
  return false;
}

// A peer that says why on the board is believed first: it speaks there before it tells the root.
bool Member::peerFailed() {
  const uint64_t poison = loadAcquire(board().poison());
  if (poison != 0) {
    const Code code = failureCode(poison >> 32);
    const auto culprit = static_cast<uint32_t>(poison) - 1;
    if (culprit >= node_.nodeRanks.size()) {
      fail(Code::RemoteError, concat("rank ", rank(), ": a peer gave up on this communicator"));
      return true;
    }
    const std::string words = printable(board().lastWords(static_cast<int>(culprit)));
    if (code == Code::InvalidUsage)
      fail(code, words);
    else
      fail(code, concat("rank ", rank(), ": rank ", node_.nodeRanks[culprit],
                        " gave up on this communicator: ", words));
    return true;
  }
  const std::optional<PeerFailure> reported = reportedFailure();
  if (!reported) return false;
  fail(Code::RemoteError, concat("rank ", rank(), ": rank ", reported->rank, " failed: ", reported->reason));
  return true;
}

// Looks at most every kGoneEvery.
bool Member::peerGone() {
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
                       std::chrono::steady_clock::now().time_since_epoch())
                       .count();
  const int64_t last = loadRelaxed(&lookedForGone_);
  if (now < last + kGoneEvery.count() || !compareExchange(&lookedForGone_, last, now)) return false;
  const uint32_t turn = static_cast<uint32_t>(nodeRank_) + fetchAdd(&looksForGone_, 1U);
  const int gone = node_.gone(turn * kGoneAtOnce, kGoneAtOnce);
  if (gone < 0) return false;
  fail(Code::RemoteError,
       concat("rank ", rank(), ": rank ", gone, " failed: its process is gone without a goodbye"));
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

Code Member::asyncError() {
  if (loadAcquire(&failed_) == 0 && !peerFailed() && !peerGone())
    if (const std::optional<Error> disagreement = watch_.disagreement()) fail(*disagreement);
  return failure().code;
}

void Member::slotMismatch(MemberWork& work, const BoundSchedule& running) {
  const MachineFailure& failure = running.failure();
  if (failure.poisoned && peerFailed()) return;
  if (const std::optional<Error> obstacle = work.obstacle(&running, false)) return failBy(work, *obstacle);
  const Connection& connection = running.schedule().connections[failure.connection];
  // A slot of another call: ranks disagree. Of this one: the library is at fault.
  const bool sameCall = failure.found.call == running.call();
  if (!sameCall && work.descriptor().isPeerCall())
    return fail(Error(Code::InvalidUsage,
                      concat("ranks disagree: rank ", rank(), " called ", work.text(), ", ",
                             peerFingerprintBytes(running.call()), " bytes; rank ", connection.from,
                             " called send #", peerFingerprintNumber(failure.found.call), ", ",
                             peerFingerprintBytes(failure.found.call), " bytes")));
  fail(Error(
      sameCall ? Code::InternalError : Code::InvalidUsage,
      concat("rank ", rank(), ": ", work.text(), ": rank ", connection.from, " sent chunk ",
             failure.found.chunk, " (", failure.found.bytes, " bytes) where chunk ", failure.expectedChunk,
             " (", failure.expectedBytes, " bytes) was expected", sameCall ? "" : ", of another call")));
}

// What is wrong with a message to itself is this rank's fault, what is with a collective that of all.
void Member::failBy(const MemberWork& work, const Error& obstacle) {
  if (work.descriptor().isPeerCall()) return fail(obstacle.code(), obstacle.what());
  fail(obstacle);
}

// Of calls that disagree.
void Member::fail(const Error& error) {
  fail(error.code(), error.what(), error.code() == Code::InvalidUsage ? Fault::Shared : Fault::Own);
}

void Member::fail(Code code, std::string message, Fault fault) {
  bool first = false;
  {
    // Together: who comes next finds the failure, and the poison.
    const std::scoped_lock lock(failureMutex_);
    first = failed_ == 0;
    if (first) {
      board().setLastWords(nodeRank_, message);
      failure_ = {code, std::move(message)};
    }
    const Code told = fault == Fault::Own && code == Code::InvalidUsage ? Code::RemoteError : code;
    compareExchange(board().poison(), uint64_t{0}, packPoison(nodeRank_, told));
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
  for (size_t peer = 0; peer < node_.nodeRanks.size(); ++peer) wake(board().doorbell(static_cast<int>(peer)));
}

// Peers of this process may be in the middle of a piece that they read from or write to this rank's buffers.
// The poison is set, so none begins another.
void Member::waitUntilUntouched() const {
  for (size_t peer = 0; peer < node_.nodeRanks.size(); ++peer) {
    if (!node_.places[static_cast<size_t>(node_.nodeRanks[peer])].sameProcess) continue;
    if (static_cast<int>(peer) == nodeRank_) continue;
    while (loadAcquire(&board().touch(static_cast<int>(peer)).touching) != 0) ::sched_yield();
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
  if (const std::optional<Error> disagreement = watch_.disagreement()) fail(*disagreement);
  throwIfFailed();
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
