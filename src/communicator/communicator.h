// A communicator of one rank, groups and memory, as the C boundary (src/api) sees them. Functions throw
// topoccl::Error; nothing here checks for NULL outputs, the boundary did.
//
// A handle is never given back to the allocator: handles of destroyed communicators stay readable, are
// recognised as dead, and are used again only after thousands of others. One thread at a time may call
// collectives and finalize() on a communicator; everything else may come from other threads meanwhile.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "communicator/task_order.h"
#include "kernels/types.h"

namespace topoccl {

class HostStream;
class Member;
struct CollectiveCall;
struct IssuedCall;
struct PeerCall;
struct SplitPart;

// Instead of what the environment says; likewise for communicators that are made of this one.
struct Deadlines {
  std::optional<std::chrono::milliseconds> init, collective, report;
};

struct CommConfig {
  int blocking = 1;
  std::string name;     // for logs; may be empty
  int minChannels = 0;  // 0: not set
  int maxChannels = 0;  // 0: not set
  Deadlines deadlines{};
};

// How a collective of a given size runs; becomes topocclPlan_t.
struct CallPlan {
  std::string algorithm;
  std::string protocol;
  std::string transport;
  int channels = 0;
  int slots = 0;
  size_t slotBytes = 0;
};

class Communicator {
 public:
  // Inside a group both are queued, and `out` is written by groupEnd.
  static void initRank(Communicator** out, int ranks, const void* id128, int rank, const CommConfig& config);
  static void initAll(Communicator** out, int count, const int* devices);

  // Collective over this communicator's ranks: those of one `color` (at least 0) make up a new one, ordered
  // by `key`, then by rank; with kNoColor a rank gets NULL. `config` NULL: this communicator's. Inside a
  // group it is queued, and `out` is written by groupEnd.
  void split(Communicator** out, int color, int key, const CommConfig* config);

  // Collective over the ranks that are not `excluded`: they make up a new communicator, in the same order.
  // With `aborting` this one's calls are aborted first, whatever state it is in, and afterwards it can only
  // be destroyed or aborted. Groups and `config` as in split().
  void shrink(Communicator** out, const std::vector<int>& excluded, bool aborting, const CommConfig* config);

  // Of any address that can be read, at least.
  static bool isOne(const void* handle);
  bool dead() const;  // destroy or abort has ended
  [[noreturn]] static void refuseDead();
  void throwIfForked() const;  // InvalidUsage in a child of the process that made it
  int rank() const;
  int ranks() const;
  int device() const;  // index among localDevices(): what initAll was given, else in turn by node rank

  // Completes what was issued; afterwards only queries, destroy and abort work. Throws InProgress where that
  // takes a while and the communicator doesn't block.
  void finalize();

  // Both end the handle's life. destroy() completes what was issued; abort() drops what has not begun, and
  // also makes a call that another thread has in flight return, and tells the other ranks.
  void destroy();
  void abort();

  // Success, the failure that made the communicator unusable, or InProgress while it, or a communicator split
  // from it, is being set up without blocking, or while calls without a stream, or a finalize, on one that
  // doesn't block still run.
  Code asyncError() const;

  // With `stream` NULL they return when this rank's result is there, or its data on its way, and its buffers
  // are its own again; else (host_stream.h) at once, and that is so when the stream has come there. With NULL
  // on a communicator that doesn't block they run later too, and throw InProgress when they have been issued.
  // Inside a group they only queue. `op` is an Operator's value or one of createScaledSum(); ignored where
  // nothing is reduced.
  void collective(CollectiveCall call, int op, const void* stream);
  void peerCall(const PeerCall& call, const void* stream);

  // Runs calls of this communicator without streams that were issued together, on the calling thread. False,
  // and nothing has run, where others that were issued before are still to run.
  bool runTogether(std::span<const IssuedCall> calls);

  // Operators of the user; see user_operators.h.
  int createScaledSum(DataType type, const void* scalar, bool deferred);
  void destroyOperator(int op);

  // Registered buffers; see registrations.h.
  void* registerBuffer(const void* buffer, size_t bytes);
  void deregisterBuffer(void* handle);

  // What was issued and has not run yet, other than on the calling thread.
  TaskOrder& tasks() { return tasks_; }

  CallPlan explain(const std::string& collective, uint64_t count, DataType type) const;

  // A call that a thread issues, or runs, inside a communicator, from its construction to its end: keeps
  // destroy and abort waiting. There is one at a time, so a flag does; splits and shrinks count apart
  // (Joining), and so does what other threads may do meanwhile (Query). Throws InvalidArgument when the
  // communicator is dead.
  class Operation {
   public:
    explicit Operation(Communicator& communicator);
    ~Operation();
    Operation(Operation&& other) noexcept : communicator_(std::exchange(other.communicator_, nullptr)) {}
    Operation& operator=(Operation&&) = delete;
    Member& member() const { return *communicator_->member_; }

   private:
    Communicator* communicator_;
  };

 private:
  friend class HandlePool;
  class Query;
  class Joining;
  using AbortFlag = std::shared_ptr<std::atomic<bool>>;
  using MakeMember = std::function<std::unique_ptr<Member>()>;
  using Join = std::function<SplitPart(Member& parent)>;  // gets this rank its place in a new one

  // Pending while a thread sets it up, then live or failed; live to destroy or abort; closing while these
  // wait for calls inside; abandoned when they came before it was live.
  static constexpr uint32_t kDead = 0, kLive = 1, kClosing = 2, kPending = 3, kFailed = 4, kAbandoned = 5;

  // Sets up a communicator here, or, where that must not block, on a thread of its own: then throws
  // InProgress.
  static void make(Communicator** out, bool blocking, const AbortFlag& abort, const MakeMember& makeMember);
  void setUp(const MakeMember& makeMember) noexcept;

  [[noreturn]] void refuse(uint32_t life) const;  // why that is not live
  // Counts one more inside, which keeps it from ending; throws where it is not live.
  void enter(uint32_t* count) const;
  template <class Call>
  void issue(Operation&& mine, const Call& call, const void* stream);
  std::shared_ptr<HostStream> ownStream();
  // Of this one's ranks; `makeMember` makes none where this rank is not `included`.
  void makeChild(Communicator** out, MakeMember makeMember, bool included, bool blocking,
                 const AbortFlag& abort);
  CommConfig configOr(const CommConfig* config) const;
  void abortCalls();
  static std::unique_ptr<Member> memberOfChild(std::shared_ptr<Joining> joining, const Join& join,
                                               const CommConfig& config, const AbortFlag& abort);
  bool idle() const;  // nothing that was issued is still to run
  void end(bool aborting);
  bool endSetUp();  // false where there is none to end
  void retire();

  static constexpr uint64_t kMagic = 0x746f706f436f6d6d;  // "topoComm"
  uint64_t magic_ = kMagic;                               // for ever
  std::unique_ptr<Member> member_;
  pid_t process_ = 0;  // that made it
  uint32_t generation_ = 0;
  uint32_t life_ = kDead;
  AbortFlag abort_;                  // of the set-up
  uint32_t settingUp_ = 0;           // 1 while its thread is inside
  uint32_t splitting_ = 0;           // splits and shrinks in the background that aren't there yet
  uint32_t joining_ = 0;             // those that still need this one ...
  uint32_t nextJoining_ = 0;         // ... the number of the next one ...
  uint32_t joiningTurn_ = 0;         // ... and of the one whose turn it is
  std::optional<Error> setUpError_;  // why it failed
  uint32_t queries_ = 0;             // calls of any thread inside ...
  uint32_t operation_ = 0;           // ... and 1 while one that issues or runs is
  TaskOrder tasks_;
  std::shared_ptr<HostStream>
      own_;  // where calls without a stream run if it doesn't block; made on first use
  const TaskOrder* ownOrder_ = nullptr;  // the same, for other threads
};

// The communicator behind a C handle. Throws InvalidArgument for NULL, for what is none and for dead handles,
// and InvalidUsage for those that a process inherited which was forked.
Communicator* checkedCommunicator(const void* handle);

void makeUniqueId(void* bytes128);
// Inside a group: a call of it was refused; groupEnd will report `error` and run nothing.
void refuseInGroup(const Error& error);
void refuseInGroupForMemory() noexcept;
void groupStart();
void groupEnd();

// A group as long as a scope. Without end() nothing of it runs.
class GroupScope {
 public:
  GroupScope() { groupStart(); }
  ~GroupScope();
  GroupScope(const GroupScope&) = delete;
  GroupScope& operator=(const GroupScope&) = delete;

  void end();

 private:
  bool ended_ = false;
};

void* memAlloc(size_t bytes);
void memFree(void* memory);

// The process's last error text; any thread.
std::string lastError();
void setLastError(std::string text);

}  // namespace topoccl
