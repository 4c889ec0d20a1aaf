// The ranks of one communicator talk to each other out of band: to agree on things at init, and to learn of
// deaths and aborts afterwards. Not for data.
//
// Two kinds: over TCP through a root (connectBootstrap), and within one process (localBootstrap).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/crypto.h"
#include "base/settings.h"
#include "bootstrap/unique_id.h"

namespace topoccl {

// A rank that died, aborted or failed; -1 where the failure can't be laid to one rank.
struct PeerFailure {
  int rank = -1;
  std::string reason;
};

// One rank's end. All calls by one thread at a time. After the first failure every collective call throws an
// Error that says why, on every rank. Destroying without leave() counts as this rank's death.
class Bootstrap {
 public:
  virtual ~Bootstrap() = default;

  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  // Every rank's contribution, by rank. Collective: all ranks call it, in the same order. Contributions may
  // differ in size and come to at most 64 MiB together. Waits for the others as long as init does
  // (TOPOCCL_INIT_TIMEOUT). Throws RemoteError naming who failed or did not come, AbortedError on abort.
  virtual std::vector<std::string> allGather(const std::string& mine) = 0;

  // What is known of failures, without waiting: at most one system call.
  virtual std::optional<PeerFailure> failure() = 0;

  // Tells the other ranks that this one gives up; their failure() then names it. Never throws, takes at most
  // two seconds.
  virtual void reportAbort(const std::string& why) noexcept = 0;

  // Orderly goodbye, after the last collective call. Never throws, takes at most two seconds.
  virtual void leave() noexcept = 0;

  // A key that only this communicator's ranks can derive, different for each `purpose`.
  virtual Bytes32 deriveKey(const std::string& purpose) const = 0;

  void barrier() { allGather(""); }
};

// Makes an id and starts its root in this process (root.h), or derives it from NCCL_COMM_ID where set.
UniqueId getUniqueId(const Settings& settings);

// Collective over `ranks` ranks with the same id. Retries while the root can't be reached, waits for the
// other ranks, all until settings.initTimeout. Throws on every rank that took part, with ranks and values
// named, when ranks are missing, double, out of range, or disagree about the number of ranks or the library's
// version; so don't check `rank` before. `abort`, where given, must outlive the object; `check` is called now
// and then until all have joined, and what it throws ends the wait.
std::unique_ptr<Bootstrap> connectBootstrap(const UniqueId& id, int ranks, int rank, const Settings& settings,
                                            const std::atomic<bool>* abort = nullptr,
                                            const std::function<void()>& check = {});

// All ranks of a communicator that lives in one process. No sockets; each is used from its own thread.
// `aborts`: one flag per rank, or none at all.
std::vector<std::unique_ptr<Bootstrap>> localBootstrap(int ranks, const Settings& settings = {},
                                                       std::vector<const std::atomic<bool>*> aborts = {});

}  // namespace topoccl
