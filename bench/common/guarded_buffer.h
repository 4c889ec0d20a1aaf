// A buffer that notices writes just outside the part a call may touch.
#pragma once

#include <cstddef>
#include <cstdint>

namespace topoccl::bench {

enum class BufferKind { Ordinary, Registered };  // malloc's memory, or ncclMemAlloc's

class GuardedBuffer {
 public:
  // Room for `bytes`, starting at a page boundary plus `misalignment` bytes. Pages are touched.
  GuardedBuffer(size_t bytes, size_t misalignment, BufferKind kind);
  ~GuardedBuffer();
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  std::byte* data() const { return data_; }

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
