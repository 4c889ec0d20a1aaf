// One rank of one communicator: everything a communicator knows and does for that rank, behind the handle.
//
// Owned by its Communicator. One thread at a time runs works; only requestAbort() and failure() may come from
// another thread. After the first failure the member is poisoned: works fail at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "algorithms/range_table.h"
#include "base/settings.h"
#include "bootstrap/bootstrap.h"
#include "communicator/collective_work.h"
#include "communicator/communicator.h"
#include "communicator/node_set_up.h"
#include "communicator/open_schedule.h"
#include "executor/driver.h"
#include "schedule/layout.h"

namespace topoccl {

class Member {
 public:
  using AbortFlag = std::shared_ptr<std::atomic<bool>>;

  // Collective: all ranks of the bootstrap construct theirs. Throws Error. `abort` is the flag the bootstrap
  // watches. `device`: -1 = the position among the node's ranks.
  Member(std::unique_ptr<Bootstrap> bootstrap, AbortFlag abort, const Settings& settings,
         const CommConfig& config, int device);
  ~Member();

  int rank() const { return bootstrap_->rank(); }
  int ranks() const { return bootstrap_->ranks(); }
  int device() const { return device_; }
  const Settings& settings() const { return settings_; }

  // ---- works ----

  // Issues a call: it takes the next number. Throws if the member is poisoned or finalized.
  CollectiveWork issue(const CollectiveCall& call);

  // Runs one call to its end without allocating. Throws what went wrong.
  void run(const CollectiveCall& call);

  // Throws if the member is poisoned or finalized.
  void throwIfUnusable() const;

  const WaitPolicy& waitPolicy() const { return waitPolicy_; }
  const std::shared_ptr<NodeMemory>& memory() const { return node_.memory; }
  Doorbell* doorbell() const { return &line().doorbell; }

  // What the range table and the settings choose.
  Choice choose(const CollectiveCall& call) const;
  CallPlan explain(const CollectiveCall& call) const;

  // ---- for works ----

  // The schedule for such a call; nullptr until all its connections are there. Throws Error.
  OpenSchedule* open(const CollectiveCall& call);
  DirectGuard guard() const { return {&line().touch.touching, node_.memory->poison()}; }
  unsigned char* scratch(uint64_t bytes);
  void post(const CallDescriptor& call) { node_.memory->post(nodeRank_, call); }

  // Whether the work must be given up: aborted, poisoned, a dead peer, a mismatch. Calls fail() itself.
  bool mustGiveUp(const CollectiveWork& work, const BoundSchedule* running);

  // A slot held something else than the work expected, or the communicator was poisoned meanwhile.
  void slotMismatch(const CollectiveWork& work, const BoundSchedule& running);

  // The first failure counts: it is kept, peers are told, and nobody touches this rank's buffers after.
  void fail(Code code, const std::string& message);

  // ---- life ----

  struct Failure {
    Code code = Code::Success;
    std::string message;
  };
  Failure failure() const;
  // Success, this rank's failure, or RemoteError when a peer failed or died. Any thread.
  Code asyncError() const;
  void throwIfFailed() const;

  void finalize();
  void requestAbort();  // any thread
  void leave();         // says goodbye to the other ranks; nothing may be run after

 private:
  using OpenKey = std::tuple<Collective, int, Algorithm, Protocol, int>;  // collective, root, choice

  // What the last call used: the next is most often like it.
  struct Recent {
    Collective collective = Collective::AllReduce;
    int root = -1;
    uint64_t bytes = 0;
    OpenSchedule* schedule = nullptr;
  };

  // This rank's schedule for a choice, and the slots of its connections.
  struct Planned {
    Schedule schedule;
    SlotPlan slots;
  };

  Planned plan(const Choice& choice) const;
  OpenSchedule* open(const CollectiveCall& call, const Choice& choice);
  RankLine& line() const { return node_.memory->line(nodeRank_); }
  void setWaitPolicy();
  void wakeNode() const;
  void waitUntilUntouched() const;
  bool peerFailed();
  bool peerLeft(const CollectiveWork& work);
  std::optional<PeerFailure> reportedFailure() const;
  std::string waitText(const BoundSchedule* running) const;
  bool mismatched(const CollectiveWork& work);

  Settings settings_;
  AbortFlag abort_;
  std::unique_ptr<Bootstrap> bootstrap_;
  int minChannels_ = 0;  // 0: not set
  int maxChannels_ = 0;
  RangeTable table_;
  ChoiceFilter filter_;
  NodeSetUp node_;
  int nodeRank_ = 0;
  int device_ = 0;
  std::unique_ptr<Connector> connector_;
  WaitPolicy waitPolicy_;
  std::map<OpenKey, std::unique_ptr<OpenSchedule>> open_;
  Recent recent_;
  std::vector<unsigned char> scratch_;
  uint64_t calls_ = 0;  // collectives issued
  Waiter waiter_;
  bool finalized_ = false;

  mutable std::mutex bootstrapMutex_;  // after init: failure() is also asked from other threads
  uint32_t failing_ = 0;               // 1 from the first fail() on
  uint32_t failed_ = 0;                // 1 once failure_ is set, to be looked at without the mutex
  mutable std::mutex failureMutex_;
  Failure failure_;
};

}  // namespace topoccl
