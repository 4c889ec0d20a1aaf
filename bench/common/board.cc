#include "common/board.h"

#include <sched.h>

#include <atomic>
#include <chrono>
#include <new>
#include <thread>

#include "common/failure.h"

namespace topoccl::bench {

struct alignas(64) Board::Head {
  std::atomic<uint32_t> arrived;
  std::atomic<uint32_t> generation;
  std::atomic<uint32_t> failed;
};

size_t Board::bytesNeeded(int drivers) {
  return sizeof(Head) + static_cast<size_t>(drivers) * kCellBytes;
}

// Zeroed memory is a valid Head: its members are lock-free atomics of zero.
Board::Board(void* memory, int drivers, int driver)
    : head_(std::launder(static_cast<Head*>(memory))), drivers_(drivers), driver_(driver) {
  static_assert(std::atomic<uint32_t>::is_always_lock_free);
}

std::byte* Board::cell(int driver) const {
  return reinterpret_cast<std::byte*>(head_ + 1) + static_cast<size_t>(driver) * kCellBytes;
}

void Board::fail() noexcept {
  head_->failed = 1;
}

bool Board::failed() const {
  return head_->failed != 0;
}

void Board::checkFailed() const {
  if (failed()) throw Failure(ExitCode::InternalError, "another rank failed");
}

void Board::barrier() {
  checkFailed();
  const uint32_t generation = head_->generation;
  if (head_->arrived.fetch_add(1) + 1 == static_cast<uint32_t>(drivers_)) {
    head_->arrived = 0;
    head_->generation = generation + 1;
    return;
  }
  awaitAfter(generation);
  // All drivers' arrivals come before this. It is already so by way of the last driver, but if that one is in
  // another process, a race detector can't know what two threads of this process owe to it.
  (void)head_->arrived.load();
}

void Board::awaitAfter(uint32_t generation) const {
  using Clock = std::chrono::steady_clock;
  constexpr int kSpins = 200;
  // Short waits yield, so that all drivers leave a barrier before a timed loop within microseconds; only
  // long ones (someone checks a large result) sleep and leave the cores alone.
  constexpr auto kYielding = std::chrono::milliseconds(20);
  for (int spin = 0; spin < kSpins; spin++) {
    if (head_->generation != generation) return;
  }
  const auto start = Clock::now();
  while (head_->generation == generation) {
    checkFailed();
    if (Clock::now() - start < kYielding) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
}

}  // namespace topoccl::bench
