#include "base/peer_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "base/crypto.h"

namespace topoccl {

namespace {

uint64_t newToken() {
  uint64_t token = 0;
  while (token == 0) token = random<uint64_t>();
  return token;
}

}  // namespace

MemoryOwner ownMemory() {
  static const auto* const token = new uint64_t(newToken());  // never freed: peers read it to the end
  return {::getpid(), *token, token};
}

std::optional<PeerMemory> PeerMemory::attach(const MemoryOwner& owner) {
  if (owner.token == 0) return std::nullopt;
  const PeerMemory memory(owner);
  return memory.read(nullptr, nullptr, 0) == 0 ? std::optional<PeerMemory>(memory) : std::nullopt;
}

int PeerMemory::read(void* to, const void* from, size_t bytes) const {
  size_t done = 0;
  do {
    uint64_t token = 0;
    const iovec here[] = {{&token, sizeof(token)}, {static_cast<char*>(to) + done, bytes - done}};
    const iovec there[] = {{const_cast<uint64_t*>(owner_.tokenAt), sizeof(token)},
                           {const_cast<char*>(static_cast<const char*>(from)) + done, bytes - done}};
    const unsigned long parts = done == bytes ? 1 : 2;
    const ssize_t got = ::process_vm_readv(static_cast<pid_t>(owner_.process), here, parts, there, parts, 0);
    if (got < 0) return errno;
    // Another process that has the number now, and perhaps memory there.
    if (static_cast<size_t>(got) < sizeof(token) || token != owner_.token) return ESRCH;
    if (static_cast<size_t>(got) == sizeof(token) && done != bytes) return EFAULT;
    done += static_cast<size_t>(got) - sizeof(token);
  } while (done < bytes);
  return 0;
}

}  // namespace topoccl
