// Deadlines on the monotonic clock, and the limits that every wait of this library carries.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>

#include "base/error.h"

namespace topoccl {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline never() { return Deadline(Clock::time_point::max()); }
  static Deadline in(Clock::duration duration) { return Deadline(Clock::now() + duration); }
  static Deadline at(Clock::time_point time) { return Deadline(time); }

  Clock::time_point time() const { return time_; }
  bool passed() const { return *this != never() && Clock::now() >= time_; }

  // What is left, at least 0 and at most `atMost`.
  Clock::duration left(Clock::duration atMost) const {
    if (*this == never()) return atMost;
    return std::clamp(time_ - Clock::now(), Clock::duration::zero(), atMost);
  }

  bool operator==(const Deadline&) const = default;
  auto operator<=>(const Deadline&) const = default;

 private:
  explicit Deadline(Clock::time_point time) : time_(time) {}

  Clock::time_point time_;
};

// How long a wait may last: until `deadline`, until somebody sets `*abort`, or until `*check`, where there is
// one, throws why what is waited for can't come any more. Waits sleep in slices of kWaitSlice, so that each
// is noticed within one.
struct Wait {
  Deadline deadline = Deadline::never();
  const std::atomic<bool>* abort = nullptr;
  const std::function<void()>* check = nullptr;

  bool aborted() const { return abort && abort->load(); }
};

inline constexpr std::chrono::milliseconds kWaitSlice{20};

// A wait ended because its deadline passed.
struct TimeoutError : Error {
  explicit TimeoutError(const std::string& message) : Error(Code::RemoteError, message) {}
};

// A wait ended because this rank's own user aborted.
struct AbortedError : Error {
  explicit AbortedError(const std::string& message) : Error(Code::InvalidUsage, message) {}
};

// Throws if `wait` is over; `what` says what was tried.
void throwIfOver(const Wait& wait, const std::string& what);

// Sleeps for `duration`, or less where the deadline comes first. Throws AbortedError, and what `check`
// throws.
void sleepFor(Deadline::Clock::duration duration, const Wait& wait, const std::string& what);

}  // namespace topoccl
