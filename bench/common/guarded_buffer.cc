#include "common/guarded_buffer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "common/failure.h"

namespace topoccl::bench {
namespace {

constexpr size_t kAlignment = 4096;
constexpr size_t kGuardBytes = 256;
constexpr std::byte kGuard{0xd6};

}  // namespace

GuardedBuffer::GuardedBuffer(size_t bytes, size_t largestMisalignment, BufferKind kind) : kind_(kind) {
  const size_t wanted = kAlignment + largestMisalignment + bytes + kGuardBytes;
  const size_t total = (wanted + kAlignment - 1) / kAlignment * kAlignment;
  if (kind == BufferKind::Registered) {
    check(ncclMemAlloc(&memory_, total));
  } else {
    memory_ = std::aligned_alloc(kAlignment, total);
  }
  if (memory_ == nullptr) {
    throw Failure(ExitCode::InternalError, "out of memory: a buffer of " + std::to_string(total) + " bytes");
  }
  std::memset(memory_, 0, total);
  misalign(0);
}

// The first page is room for the guards in front of the data.
void GuardedBuffer::misalign(size_t bytes) {
  data_ = static_cast<std::byte*>(memory_) + kAlignment + bytes;
}

GuardedBuffer::~GuardedBuffer() {
  if (kind_ == BufferKind::Registered) {
    (void)ncclMemFree(memory_);
  } else {
    std::free(memory_);
  }
}

void GuardedBuffer::raiseGuards(size_t usedBytes) {
  std::fill_n(data_ - kGuardBytes, kGuardBytes, kGuard);
  std::fill_n(data_ + usedBytes, kGuardBytes, kGuard);
}

uint64_t GuardedBuffer::brokenGuards(size_t usedBytes) const {
  const auto broken = [](const std::byte* guards) {
    return kGuardBytes - static_cast<size_t>(std::count(guards, guards + kGuardBytes, kGuard));
  };
  return broken(data_ - kGuardBytes) + broken(data_ + usedBytes);
}

}  // namespace topoccl::bench
