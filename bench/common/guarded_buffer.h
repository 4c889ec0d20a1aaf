// A buffer that notices writes just outside the part a call may touch.
#pragma once

#include <cstddef>
#include <cstdint>

namespace topoccl::bench {

enum class BufferKind { Ordinary, Registered };  // malloc's memory, or ncclMemAlloc's

class GuardedBuffer {
 public:
  // Room for `bytes` from a page boundary, or from up to `largestMisalignment` bytes after it. Touches all
  // pages.
  GuardedBuffer(size_t bytes, size_t largestMisalignment, BufferKind kind);
  ~GuardedBuffer();
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  std::byte* data() const { return data_; }
  // Moves data() to `bytes` after the page boundary.
  void misalign(size_t bytes);

  // Writes guards right before data() and right after its first `usedBytes`.
  void raiseGuards(size_t usedBytes);
  // Guard bytes that changed since raiseGuards(usedBytes).
  uint64_t brokenGuards(size_t usedBytes) const;

 private:
  BufferKind kind_;
  void* memory_ = nullptr;
  std::byte* data_ = nullptr;
};

}  // namespace topoccl::bench
