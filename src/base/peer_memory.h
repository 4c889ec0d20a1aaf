// Memory of other processes of this host, read by address: what is large goes from one process's buffer to
// another's with one copy (Linux: cross memory attach, process_vm_readv(2)).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace topoccl {

// How a process says where its memory is. A process's number is another one's in another namespace, or later:
// who reads looks for the token, each time.
struct MemoryOwner {
  int64_t process = 0;
  uint64_t token = 0;
  const uint64_t* tokenAt = nullptr;
};

// Of this process; the same for its life.
MemoryOwner ownMemory();

class PeerMemory {
 public:
  // Nothing where that memory can't be read from here: a process that this one doesn't see, or may not trace
  // (another user's, kernel.yama.ptrace_scope, a filter of system calls).
  static std::optional<PeerMemory> attach(const MemoryOwner& owner);

  // Copies `bytes` from `from`, an address of the other process, to `to`. Returns 0, or an errno: ESRCH when
  // the process is gone, EFAULT when it has no such memory; `to` then holds anything.
  int read(void* to, const void* from, size_t bytes) const;

 private:
  explicit PeerMemory(const MemoryOwner& owner) : owner_(owner) {}

  MemoryOwner owner_;
};

}  // namespace topoccl
