#include "base/deadline.h"

#include <thread>

namespace topoccl {

void throwIfOver(const Wait& wait, const std::string& what) {
  if (wait.aborted()) throw AbortedError(concat(what, ": aborted by this rank"));
  if (wait.deadline.passed()) throw TimeoutError(concat(what, ": the deadline has passed"));
  if (wait.check != nullptr) (*wait.check)();
}

void sleepFor(Deadline::Clock::duration duration, const Wait& wait, const std::string& what) {
  const Deadline end = std::min(Deadline::in(duration), wait.deadline);
  while (!end.passed()) {
    if (wait.aborted()) throw AbortedError(concat(what, ": aborted by this rank"));
    if (wait.check != nullptr) (*wait.check)();
    std::this_thread::sleep_for(end.left(kWaitSlice));
  }
}

}  // namespace topoccl
