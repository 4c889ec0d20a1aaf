// How a thread waits when none of its ranks can move: the only place in the library where a driver waits.
//
//   spin    a while, when the ranks have a core each: a peer on another core answers within a microsecond
//   yield   a few times: on a shared core the peer needs ours
//   sleep   on the ranks' doorbells; whoever publishes or frees a slot for them rings
//
// A rank can't know at init where it will run: two unpinned threads that start on one core and spin would
// cost each other a time slice per message. So a waiter writes its core into its doorbell line and does not
// spin when the rank it waits for was last seen on the same core; the wake-up also lets the system move the
// sleeper to an idle core.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "kernels/doorbell.h"

namespace topoccl {

struct WaitPolicy {
  uint32_t spins = 0;   // looks before the first yield
  uint32_t yields = 8;  // looks, with a yield each, before the first sleep
};

// Longest sleep: how late abort flags, deadlines and dead peers are noticed.
inline constexpr std::chrono::milliseconds kLongestSleep{20};

class Waiter {
 public:
  // Rings on any of the doorbells end a sleep. One doorbell (the usual case) or several; the list is the
  // waiter's until it finishes.
  void reset(WaitPolicy policy, Doorbell** bells, uint32_t count);
  // This one is not waited on any more: it may be another waiter's from now on.
  void forget(const Doorbell* bell);

  // Something moved: begin anew.
  void moved() {
    if (armed_) disarm();
    looks_ = 0;
  }

  // Whether the next idle() will look at its `blocker`.
  bool wantsBlocker() const { return looks_ % kLooksPerCoreCheck == 0 && looks_ < policy_.spins; }

  // Nothing moved. `blocker`: doorbell of the rank waited for, if known. Returns true when it is time to
  // check aborts, deadlines and peers, which happens at least once per kLongestSleep, and now and then while
  // it spins.
  bool idle(const Doorbell* blocker);

  // Ends a wait in whatever state: no publisher rings for this waiter any more.
  void finish() {
    if (armed_) disarm();
  }

 private:
  // While spinning, cores are compared once per so many looks.
  static constexpr uint32_t kLooksPerCoreCheck = 256;
  // And the caller is sent to its checks once per so many: a spin limit may be any number.
  static constexpr uint32_t kLooksPerCheck = 4096;

  // Looks before the first sleep.
  uint64_t limit() const { return uint64_t{policy_.spins} + policy_.yields; }
  bool sharesCore(const Doorbell* blocker);
  void arm();
  void disarm();
  void sleep();

  WaitPolicy policy_;
  Doorbell** bells_ = nullptr;
  uint32_t count_ = 0;
  uint64_t looks_ = 0;
  bool armed_ = false;  // sleepers are announced; one more look, then sleep
  std::vector<uint32_t> seen_;
};

}  // namespace topoccl
