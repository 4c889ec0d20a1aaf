// How a member fails: what it notices, what it keeps, and what it tells the others.
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include "base/deadline.h"
#include "base/logging.h"
#include "bootstrap/messages.h"
#include "bootstrap/rank_list.h"
#include "communicator/describe_call.h"
#include "communicator/member.h"
#include "kernels/sync.h"

namespace topoccl {

namespace {

// A system call for each rank, whose cost grows with the ranks: each looks at some, and all together at all.
// Who is alone has seen all after 2 s.
constexpr std::chrono::milliseconds kGoneEvery{200};
constexpr size_t kGoneAtOnce = 16, kGoneLooks = 10;

// Node rank + 1 in 32 bits, then the code in 8, then the fault.
uint64_t packPoison(int nodeRank, Code code, Member::Fault fault) {
  return static_cast<uint64_t>(nodeRank + 1) | static_cast<uint64_t>(code) << 32 |
         static_cast<uint64_t>(fault) << 40;
}

// Others write there too: a failure it is in any case.
Code codeOf(uint64_t poison) {
  for (const Code known : {Code::SystemError, Code::InternalError, Code::InvalidArgument, Code::InvalidUsage})
    if ((poison >> 32 & 0xff) == static_cast<uint64_t>(known)) return known;
  return Code::RemoteError;
}

Member::Fault faultOf(uint64_t poison) {
  for (const Member::Fault known : {Member::Fault::Shared, Member::Fault::Other})
    if (poison >> 40 == static_cast<uint64_t>(known)) return known;
  return Member::Fault::Own;
}

// Copies of an exception share its text, and threads would let go of it out of each other's sight.
Error unshared(const Error& error) noexcept {
  try {
    return {error.code(), std::string(error.what())};
  } catch (const std::bad_alloc&) {
    return error;
  }
}

std::string failedText(int rank, const std::string& reason) {
  return rank < 0 ? reason : concat("rank ", rank, " failed: ", reason);
}

}  // namespace

bool Member::mustGiveUp(MemberWork& work, const BoundSchedule* running, bool stalled) {
  if (aborted_) {
    fail(Error(Code::InvalidUsage,
               concat("rank ", rank(), ": the communicator was aborted during ", work.text())),
         Fault::Own);
    return true;
  }
  if (peerFailed()) return true;
  if (const std::optional<Error> obstacle = work.obstacle(running, stalled)) {
    failByObstacle(work, *obstacle);
    return true;
  }
  if (!stalled) watch_.moved();
  if (stalled)
    if (const std::optional<Error> circle =
            watch_.look(work.waiting(running), MemberWork::progressOf(running))) {
      failByDisagreement(*circle);
      return true;
    }
  if (stalled && peerGone()) return true;
  if (settings_.collectiveTimeout.count() > 0 && work.stuck(running, settings_.collectiveTimeout)) {
    fail(Error(Code::RemoteError,
               concat("rank ", rank(), ": ", work.text(), " did not move for ",
                      secondsText(settings_.collectiveTimeout.count()),
                      ", its deadline (TOPOCCL_COLLECTIVE_TIMEOUT); ", describeWait(work.waiting(running)))),
         Fault::Own);
    return true;
  }
  return false;
}

// A peer that says why on the board is believed first: it speaks there before it tells the root.
bool Member::peerFailed() {
  if (failByPoison()) return true;
  const std::optional<PeerFailure> reported = reportedFailure();
  if (!reported) return false;
  if (failByPoison()) return true;  // both have come since the first look
  const int culprit = reported->rank >= 0 ? reported->rank : whoIsGone();
  fail(Error(Code::RemoteError, failedText(culprit, reported->reason)), Fault::Other);
  return true;
}

// The root is gone, and with it the process of one of several ranks. Its end takes a moment.
int Member::whoIsGone() const {
  constexpr std::chrono::milliseconds kMoment{50};
  for (const Deadline end = Deadline::in(kMoment);; ::sched_yield()) {
    const int gone = node_.gone(0, node_.nodeRanks.size());
    if (gone >= 0 || end.passed()) return gone;
  }
}

// False where nobody has poisoned the communicator.
bool Member::failByPoison() {
  const uint64_t poison = loadAcquire(board().poison());
  if (poison == 0) return false;
  const auto culprit = static_cast<uint32_t>(poison) - 1;
  if (culprit >= node_.nodeRanks.size()) {
    fail(Error(Code::RemoteError, "a peer gave up on this communicator"), Fault::Other);
    return true;
  }
  const std::string words = printable(board().lastWords(static_cast<int>(culprit)));
  const Fault fault = faultOf(poison);
  const std::string whose = fault == Fault::Own ? concat("rank ", rank(), ": rank ", node_.nodeRanks[culprit],
                                                         " gave up on this communicator: ")
                                                : "";
  fail(Error(codeOf(poison), whose + words), fault);
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
  const size_t most = std::max(kGoneAtOnce, node_.nodeRanks.size() / kGoneLooks + 1);
  const int gone = node_.gone(turn * most, most);
  if (gone < 0) return false;
  fail(Error(Code::RemoteError, failedText(gone, kGoneText)), Fault::Other);
  return true;
}

// Nothing while another thread is in an allGather, which learns of failures itself.
std::optional<PeerFailure> Member::reportedFailure() const {
  const std::unique_lock lock(bootstrapMutex_, std::try_to_lock);
  return lock ? bootstrap_->failure() : std::nullopt;
}

std::optional<Error> Member::asyncError() {
  if (loadAcquire(&failed_) == 0 && !peerFailed() && !peerGone())
    if (const std::optional<Error> disagreement = watch_.disagreement()) failByDisagreement(*disagreement);
  return failure();
}

void Member::slotMismatch(MemberWork& work, const BoundSchedule& running) {
  const MachineFailure& failure = running.failure();
  if (failure.poisoned && peerFailed()) return;
  if (failure.readError != 0) return unreadable(work, running);
  if (const std::optional<Error> obstacle = work.obstacle(&running, false))
    return failByObstacle(work, *obstacle);
  const Connection& connection = running.schedule().connections[failure.connection];
  // A slot of another call: ranks disagree. Of this one: the library is at fault.
  const bool sameCall = failure.found.call == running.call();
  if (!sameCall && work.descriptor().isPeerCall())
    return failByDisagreement(Error(
        Code::InvalidUsage, concat("ranks disagree: rank ", rank(), " called ", work.text(), ", ",
                                   peerFingerprintBytes(running.call()), " bytes; rank ", connection.from,
                                   " called send #", peerFingerprintNumber(failure.found.call), ", ",
                                   peerFingerprintBytes(failure.found.call), " bytes")));
  failByDisagreement(Error(
      sameCall ? Code::InternalError : Code::InvalidUsage,
      concat("rank ", rank(), ": ", work.text(), ": rank ", connection.from, " sent chunk ",
             failure.found.chunk, " (", failure.found.bytes, " bytes) where chunk ", failure.expectedChunk,
             " (", failure.expectedBytes, " bytes) was expected", sameCall ? "" : ", of another call")));
}

// What a slot refers to couldn't be read.
void Member::unreadable(const MemberWork& work, const BoundSchedule& running) {
  if (peerFailed()) return;
  const MachineFailure& failure = running.failure();
  const int peer = running.schedule().connections[failure.connection].from;
  if (failure.readError == ESRCH)
    return fail(Error(Code::RemoteError, failedText(peer, kGoneText)), Fault::Other);
  fail(Error(Code::SystemError,
             concat("rank ", rank(), ": ", work.text(), ": cannot read ", failure.expectedBytes,
                    " bytes of rank ", peer, "'s buffer: ", std::strerror(failure.readError),
                    "; is it memory of that size? TOPOCCL_CMA=0 moves data without reading there")),
       Fault::Own);
}

// That the other end of a message has left is of this rank, what is wrong with a collective of all.
void Member::failByObstacle(const MemberWork& work, const Error& obstacle) {
  if (work.descriptor().isPeerCall()) return fail(obstacle, Fault::Own);
  failByDisagreement(obstacle);
}

void Member::failByDisagreement(const Error& error) {
  fail(error, error.code() == Code::InvalidUsage ? Fault::Shared : Fault::Own);
}

void Member::fail(const Error& error, Fault fault) {
  const Error mine =
      fault == Fault::Other ? Error(error.code(), concat("rank ", rank(), ": ", error.what())) : error;
  bool first = false;
  {
    // Together: who comes next finds the failure, and the poison.
    const std::scoped_lock lock(failureMutex_);
    first = !failure_;
    if (first) {
      board().setLastWords(nodeRank_, error.what());
      failure_ = unshared(mine);
    }
    const bool ownMistake = fault == Fault::Own && error.code() == Code::InvalidUsage;
    const Code told = ownMistake ? Code::RemoteError : error.code();
    compareExchange(board().poison(), uint64_t{0}, packPoison(nodeRank_, told, fault));
    storeRelease(&failed_, 1U);
  }
  fullFence();  // before the look at who touches
  if (first) wakeNode();
  waitUntilUntouched();
  if (first) tellOthers();
}

void Member::failByAbort(const Error& error) {
  try {
    const bool failed = loadAcquire(&failed_) != 0 || peerFailed();
    const int gone = failed ? -1 : node_.gone(0, node_.nodeRanks.size());
    if (gone >= 0) fail(Error(Code::RemoteError, failedText(gone, kGoneText)), Fault::Other);
  } catch (const std::exception&) {  // without a reason, then
  }
  fail(error, Fault::Own);
}

void Member::failBy(const std::exception& exception) {
  const auto* const error = dynamic_cast<const Error*>(&exception);
  if (error == nullptr) return failForMemory();
  fail(Error(error->code(), concat("rank ", rank(), ": ", error->what())), Fault::Own);
}

void Member::failForMemory() noexcept {
  try {
    fail(outOfMemoryError(), Fault::Own);  // which takes none
  } catch (const std::exception&) {
  }
}

void Member::tellOthers() {
  std::string message;
  try {
    message = failure()->what();
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

std::optional<Error> Member::failure() const {
  const std::scoped_lock lock(failureMutex_);
  return failure_ ? std::optional<Error>(unshared(*failure_)) : std::nullopt;
}

void Member::throwIfFailed() const {
  if (loadAcquire(&failed_) == 0) return;
  if (const std::optional<Error> failure = this->failure()) throw Error(*failure);
}

}  // namespace topoccl
