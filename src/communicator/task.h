// Calls that run together, on one thread: a call, or those calls of a group that hang together by a
// communicator or a stream. The thread is the caller's, or a host stream's. See docs/communicator.md#streams.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "communicator/issued_call.h"
#include "communicator/rank_works.h"

namespace topoccl {

class Task : public std::enable_shared_from_this<Task> {
 public:
  // `calls` in order of issue. Throws if a communicator died meanwhile or can't be used.
  explicit Task(std::vector<IssuedCall> calls);

  bool runsOnCaller() const { return onCaller_; }
  bool inBackground() const { return inBackground_; }

  // Throws InvalidUsage where a rank sends to itself other than it receives from itself: nobody else can
  // help.
  void checkPairs() const;
  // The calls take their numbers.
  void issue();
  // Those that can't run at once take their places in their orders, all together. These keep their
  // communicators from ending from then on.
  static void enter(const std::vector<std::shared_ptr<Task>>& tasks);
  // Runs it on the calling thread, which issued it, when its turn has come. Throws what went wrong.
  void runHere();
  // There was no memory for it. What has numbers will not run: peers are told.
  void giveUp() noexcept;

  // ---- for its runner and its orders ----

  // With the orders' lock:
  bool runsOn(const HostStream& stream) const { return !onCaller_ && streams_.front().get() == &stream; }
  bool mayBegin() const;           // it is the first in all its orders
  void begin() { begun_ = true; }  // it can't be dropped any more
  void wakeRunner();
  uint64_t number() const { return number_; }        // in order of entering
  static uint64_t lastNumber() { return entered_; }  // of the last that has entered

  // Without:
  void run() noexcept;  // keeps what went wrong ...
  void end();           // ... and leaves that with its streams, and its orders

  // Takes `communicator`'s calls out of all tasks that have not begun: they never run.
  static void drop(Communicator& communicator);

 private:
  RankWorks* worksOf(const Communicator& communicator);
  bool mustWait() const;
  void enter();
  void leaveOrders();
  void leaveWithError();
  bool allDropped() const;
  static std::shared_ptr<Task> dropOne(Communicator& communicator);
  void drop(RankWorks& works);
  void driveLines();
  void endLine(RankWorks& works, bool failed);
  WaitPolicy waitPolicy() const;
  void keep(const Error& error);

  static uint64_t entered_;  // how many tasks

  std::vector<IssuedCall> calls_;
  std::deque<RankWorks> ranks_;
  std::vector<std::shared_ptr<HostStream>> streams_;
  bool onCaller_ = false;  // a call of it has no stream
  bool inBackground_ = false;
  uint64_t number_ = 0;  // 0: it has not entered
  bool begun_ = false;
  std::condition_variable turn_;  // of its caller
  std::vector<Doorbell*> bells_;
  Waiter waiter_;
  std::optional<Error> error_;  // the first
};

// Runs calls that were issued together: those without a stream before it returns, the others on their streams
// later. Throws what went wrong with the former; else InProgress if some run in the background.
void launch(std::vector<IssuedCall> calls);

}  // namespace topoccl
