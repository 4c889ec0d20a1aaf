#include "executor/waiter.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "kernels/sync.h"

namespace topoccl {

namespace {

// linux/futex.h of older systems lacks these; the numbers are the kernel's.
constexpr long kFutexWaitv = 449;
constexpr uint32_t kFutex32 = 2;
constexpr uint32_t kMaxWaitv = 128;
constexpr long kNanosecondsPerSecond = 1'000'000'000;
// Several doorbells on a kernel before 5.16, or more than it takes: sleep that long and look again.
constexpr long kBlindSleepNanoseconds = 50'000;

struct FutexWaiter {
  uint64_t value;
  uint64_t address;
  uint32_t flags;
  uint32_t reserved;
};

timespec sleepLimit() {
  return {0, std::chrono::nanoseconds(kLongestSleep).count()};
}

// Waits on all the words. False where the kernel can't.
bool waitAny(Doorbell* const* bells, const uint32_t* seen, uint32_t count) {
  if (count > kMaxWaitv) return false;  // a bell left out would not wake
  FutexWaiter waiters[kMaxWaitv];
  for (uint32_t i = 0; i < count; ++i)
    waiters[i] = {seen[i], reinterpret_cast<uintptr_t>(&bells[i]->bell), kFutex32, 0};
  timespec until;
  ::clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += sleepLimit().tv_nsec;
  if (until.tv_nsec >= kNanosecondsPerSecond) {
    until.tv_nsec -= kNanosecondsPerSecond;
    ++until.tv_sec;
  }
  const long result = ::syscall(kFutexWaitv, waiters, count, 0, &until, CLOCK_MONOTONIC);
  return result >= 0 || errno == EAGAIN || errno == ETIMEDOUT || errno == EINTR;
}

}  // namespace

void Waiter::reset(WaitPolicy policy, Doorbell** bells, uint32_t count) {
  policy_ = policy;
  bells_ = bells;
  count_ = count;
  looks_ = 0;
  armed_ = false;
  if (seen_.size() < count) seen_.resize(count);
}

void Waiter::forget(const Doorbell* bell) {
  if (armed_) disarm();
  count_ = static_cast<uint32_t>(std::remove(bells_, bells_ + count_, bell) - bells_);
}

bool Waiter::idle(const Doorbell* blocker) {
  if (armed_) {
    sleep();
    disarm();
    looks_ = limit();  // straight back to sleep unless something moves
    return true;
  }
  const bool shared = wantsBlocker() && sharesCore(blocker);
  ++looks_;
  if (looks_ <= policy_.spins) {
    if (!shared) {
      relaxCore();
      return looks_ % kLooksPerCheck == 0;
    }
    looks_ = uint64_t{policy_.spins} + 1;
  }
  if (looks_ <= limit()) {
    const int saved = errno;
    ::sched_yield();
    errno = saved;
    return looks_ % kLooksPerCheck == 0;
  }
  arm();
  return false;
}

bool Waiter::sharesCore(const Doorbell* blocker) {
  const int32_t core = ::sched_getcpu() + 1;
  for (uint32_t i = 0; i < count_; ++i)
    if (loadRelaxed(&bells_[i]->core) != core) storeRelaxed(&bells_[i]->core, core);
  return core > 0 && blocker != nullptr && loadRelaxed(&blocker->core) == core;
}

void Waiter::arm() {
  for (uint32_t i = 0; i < count_; ++i) {
    seen_[i] = loadAcquire(&bells_[i]->bell);
    storeRelaxed(&bells_[i]->sleeping, 1U);
  }
  fullFence();  // pairs with the fence between a publish and ring()
  armed_ = true;
}

void Waiter::disarm() {
  for (uint32_t i = 0; i < count_; ++i) storeRelaxed(&bells_[i]->sleeping, 0U);
  armed_ = false;
}

void Waiter::sleep() {
  const int saved = errno;
  const timespec limit = sleepLimit();
  if (count_ == 1) {
    ::syscall(SYS_futex, &bells_[0]->bell, FUTEX_WAIT, seen_[0], &limit, nullptr, 0);
  } else if (count_ == 0 || !waitAny(bells_, seen_.data(), count_)) {
    const timespec blind{0, kBlindSleepNanoseconds};
    ::nanosleep(&blind, nullptr);
  }
  errno = saved;
}

}  // namespace topoccl
