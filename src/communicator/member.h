// One rank of one communicator: everything a communicator knows and does for that rank, behind the handle.
//
// Owned by its Communicator. One thread at a time issues, and one at a time runs works, which may be another;
// what any thread may call says so. After the first failure the member is poisoned: works fail at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/settings.h"
#include "bootstrap/bootstrap.h"
#include "communicator/call_lines.h"
#include "communicator/collective_work.h"
#include "communicator/communicator.h"
#include "communicator/issued_call.h"
#include "communicator/node_set_up.h"
#include "communicator/node_watch.h"
#include "communicator/peer_work.h"
#include "communicator/registrations.h"
#include "communicator/schedule_book.h"
#include "communicator/user_operators.h"
#include "executor/driver.h"

namespace topoccl {

class Member {
 public:
  using AbortFlag = std::shared_ptr<std::atomic<bool>>;

  // Collective: all ranks of the bootstrap construct theirs. Throws Error. `abort` is the flag the bootstrap
  // watches. `device`: -1 = the node's ranks take turns over the devices.
  Member(std::unique_ptr<Bootstrap> bootstrap, AbortFlag abort, const Settings& settings,
         const CommConfig& config, int device);
  ~Member();

  int rank() const { return bootstrap_->rank(); }
  int ranks() const { return bootstrap_->ranks(); }
  int device() const { return device_; }
  const Settings& settings() const { return settings_; }
  const CommConfig& config() const { return config_; }
  UserOperators& operators() { return operators_; }
  Registrations& registrations() { return registrations_; }

  // ---- works ----

  // Issue a call: it takes the next number.
  CollectiveWork issue(const CollectiveCall& call);
  PeerWork issue(const PeerCall& call);

  // Issue one call and run it to its end without allocating. Throw what went wrong.
  void run(const CollectiveCall& call);
  void run(const PeerCall& call);
  // Likewise calls of this rank, all of `communicator`, without streams, that were issued together.
  void run(std::span<const IssuedCall> calls, const Communicator& communicator);

  // Throws if the member is poisoned or finalized.
  void throwIfUnusable() const;

  // How to wait: on the caller's thread, or on one beside it, whose core the caller may need to compute on.
  WaitPolicy waitPolicy(bool besideCaller) const;
  const NodeSetUp& node() const { return node_; }
  const std::shared_ptr<NodeMemory>& memory() const { return node_.memory; }
  Doorbell* doorbell() const { return &board().doorbell(nodeRank_); }

  // The how-manieth communicator of those ranks is made next.
  uint64_t nextShrink(const std::vector<int>& remaining);
  // It is this one: the others are that far.
  void skipShrinks(const std::vector<int>& remaining, uint64_t count);

  // Out of band, for set-up that follows init: collective, waits for the others as long as init does.
  std::vector<std::string> allGather(const std::string& mine);
  Bytes32 deriveKey(const std::string& purpose) const { return bootstrap_->deriveKey(purpose); }

  CallPlan explain(const CollectiveCall& call) const { return schedules_.explain(call); }
  CallPlan explain(const PeerCall& call) const { return schedules_.explain(call); }

  // ---- for works ----

  ScheduleBook& schedules() { return schedules_; }
  DirectGuard guard() const { return {&board().touch(nodeRank_).touching, board().poison()}; }
  unsigned char* scratch(uint64_t bytes);
  NodeWatch& watch() { return watch_; }

  // Whether the work must be given up: aborted, poisoned, a dead peer, something in its way. Calls fail()
  // itself.
  bool mustGiveUp(MemberWork& work, const BoundSchedule* running, bool stalled);

  // A slot held something else than the work expected, or the communicator was poisoned meanwhile.
  void slotMismatch(MemberWork& work, const BoundSchedule& running);

  // Whether any rank of this node has failed. Any thread.
  bool poisoned() const { return loadAcquire(board().poison()) != 0; }

  // Whose failure it is.
  enum class Fault {
    Own,     // this rank's: the others learn that it gave up, and why
    Shared,  // of ranks that called different things: all are told the same
    Other,   // another rank's: so they are, each with its own name in front
  };

  // The first failure counts: it is kept, and peers are told. Nobody touches this rank's buffers after any.
  // Any thread.
  void fail(const Error& error, Fault fault);
  // What ended a work here: an Error, or for want of memory.
  void failBy(const std::exception& exception);
  void failForMemory() noexcept;
  // This rank gives up by its user's will. Perhaps since a rank is gone, which the others learn then.
  void failByAbort(const Error& error);

  // ---- life ----

  std::optional<Error> failure() const;  // any thread
  // What has made the communicator unusable, if anything: a failure of this rank or of a peer, a peer's
  // death, calls that differed. Any thread.
  std::optional<Error> asyncError();
  void throwIfFailed() const;

  void finalize();
  bool finalized() const { return loadAcquire(&finalized_) != 0; }
  void requestAbort();  // of calls; any thread
  void requestEnd();    // of everything that goes on, shrinks too; any thread
  bool ends() const { return ends_; }
  bool abortRequested() const { return aborted_; }
  void leave();  // says goodbye to the other ranks; nothing may be run after

 private:
  void run(MemberWork& work);
  void runQueues(std::span<WorkQueue> queues);
  const Board& board() const { return node_.memory->board(); }
  void wakeNode() const;
  void tellOthers();
  void waitUntilUntouched() const;
  bool peerFailed();
  bool failByPoison();
  void unreadable(const MemberWork& work, const BoundSchedule& running);
  bool peerGone();
  int whoIsGone() const;
  void failByDisagreement(const Error& error);
  void failByObstacle(const MemberWork& work, const Error& obstacle);
  std::optional<PeerFailure> reportedFailure() const;

  Settings settings_;
  CommConfig config_;
  AbortFlag stopBootstrap_;  // which it watches
  std::atomic<bool> aborted_{false}, ends_{false};
  std::unique_ptr<Bootstrap> bootstrap_;
  ScheduleBook schedules_;
  UserOperators operators_;
  Registrations registrations_;
  NodeSetUp node_;
  int nodeRank_ = 0;
  NodeWatch watch_;
  int device_ = 0;
  WaitPolicy waitPolicy_;
  std::vector<unsigned char> scratch_;
  uint64_t calls_ = 0;                      // collectives issued ...
  uint64_t history_ = 0;                    // ... and their hash
  std::vector<uint64_t> sends_, receives_;  // point-to-point calls issued, by peer
  std::mutex shrinksMutex_;
  std::map<std::vector<int>, uint64_t> shrinks_;
  Waiter waiter_;
  CallLines lines_;  // of calls that run together
  std::vector<WorkQueue> queues_;
  uint32_t finalized_ = 0;
  int64_t lookedForGone_ = 0;  // when, in milliseconds ...
  uint32_t looksForGone_ = 0;  // ... and how often

  mutable std::mutex bootstrapMutex_;  // after init: failure() is also asked from other threads
  uint32_t failed_ = 0;                // 1 once failure_ is set, to be looked at without the mutex
  mutable std::mutex failureMutex_;
  std::optional<Error> failure_;
};

}  // namespace topoccl
