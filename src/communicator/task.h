// Calls that run together, on one thread: a call, or those calls of a group that hang together by a
// communicator or a stream. The thread is the caller's, or a host stream's.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "base/error.h"
#include "communicator/call.h"
#include "communicator/collective_work.h"
#include "communicator/communicator.h"
#include "communicator/peer_work.h"

namespace topoccl {

class HostStream;

// A call as a group collects it; without a stream its caller waits for it.
struct IssuedCall {
  Communicator* communicator;
  AnyCall call;
  std::shared_ptr<HostStream> stream;
};

class Task : public std::enable_shared_from_this<Task> {
 public:
  // `calls` in order of issue. Throws if a communicator died meanwhile or can't be used.
  explicit Task(std::vector<IssuedCall> calls);

  bool runsOnCaller() const { return onCaller_; }
  bool inBackground() const;  // a communicator of it doesn't block

  // The calls take their numbers.
  void issue();
  // Those that can't run at once take their places in their orders, all together. These keep their
  // communicators from ending from then on.
  static void enter(const std::vector<std::shared_ptr<Task>>& tasks);
  // Runs it on the calling thread, which issued it, when its turn has come. Throws what went wrong.
  void runHere();

  // ---- for its runner and its orders ----

  bool runsOn(const HostStream& stream) const { return !onCaller_ && streams_.front().get() == &stream; }
  bool mayBegin() const;           // with the lock: it is the first in all its orders
  void begin() { begun_ = true; }  // with the lock: it can't be dropped any more
  void run() noexcept;             // keeps what went wrong for end()
  // With the lock: leaves its orders; the error, if any, stays with its streams to be asked for.
  void end();
  void wakeRunner();  // with the lock

  // Takes `communicator`'s calls out of all tasks that have not begun: they never run.
  static void drop(Communicator& communicator);

 private:
  // Calls of one rank that run one after the other: its collectives, or its sends to one peer, or its
  // receives from one. All lines of a task run side by side.
  struct Line {
    bool isPeers = false;
    int peer = 0;
    bool sends = false;
    std::deque<std::variant<CollectiveWork, PeerWork>> works;  // which stay where they are
    std::vector<Work*> pointers;

    bool takes(const CollectiveCall&) const { return !isPeers; }
    bool takes(const PeerCall& call) const { return isPeers && peer == call.peer && sends == call.sends; }
  };
  // The calls of one rank.
  struct Part {
    Communicator* communicator;
    std::optional<Communicator::Operation> operation;  // while the thread that issues it needs the rank
    Member* member;
    std::shared_ptr<NodeMemory> memory;  // holds the doorbell that the waiter uses to the end
    std::deque<Line> lines;
    size_t running = 0;  // lines
    bool dropped = false;
  };

  Part* partOf(const Communicator& communicator);
  static Line lineFor(const CollectiveCall& call);
  static Line lineFor(const PeerCall& call);
  template <class Call>
  void issue(Part& part, const Call& call);
  bool mustWait() const;
  void enter();
  bool allDropped() const;
  void dropPart(Part& part);
  void driveLines();
  void endLine(Part& part, bool failed);
  WaitPolicy policy() const;
  void keep(const Error& error);

  std::vector<IssuedCall> calls_;
  std::deque<Part> parts_;
  std::vector<std::shared_ptr<HostStream>> streams_;
  bool onCaller_ = false;  // a call of it has no stream
  bool entered_ = false, begun_ = false;
  std::condition_variable turn_;  // of its caller
  std::optional<Error> error_;    // the first
};

// Runs calls that were issued together: those without a stream before it returns, the others on their streams
// later. Throws what went wrong with the former; else InProgress if some of the latter belong to a
// communicator that doesn't block.
void launch(std::vector<IssuedCall> calls);

}  // namespace topoccl
