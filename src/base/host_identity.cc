#include "base/host_identity.h"

#include <unistd.h>

#include "base/crypto.h"
#include "base/error.h"
#include "base/fork_safety.h"
#include "base/system_file.h"

namespace topoccl {
namespace {

std::string linkTarget(const std::string& path) {
  char target[128];
  const ssize_t length = ::readlink(path.c_str(), target, sizeof(target));
  return length > 0 ? std::string(target, static_cast<size_t>(length)) : std::string();
}

// Of the calling thread: a process whose main thread has ended has none of its own any more.
std::string namespaceOf(const std::string& procRoot, const char* kind) {
  const std::string own = linkTarget(concat(procRoot, "/thread-self/ns/", kind));
  return own.empty() ? linkTarget(concat(procRoot, "/self/ns/", kind)) : own;
}

const uint64_t& drawnNumber() {
  static const uint64_t drawn = random<uint64_t>();
  return drawn;
}

const ForkHook kHook([] { drawnNumber(); });

}  // namespace

std::string hostName() {
  char name[256] = {};
  if (::gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') return "localhost";
  const std::string full = name;
  return full.substr(0, full.find('.'));
}

uint64_t hostIdentity(const std::string& hostId, const std::string& procRoot) {
  if (!hostId.empty()) return hash64({"given", hostId});
  std::string boot = firstLineOf(procRoot + "/sys/kernel/random/boot_id");
  if (boot.empty()) boot = concat(hostName(), "/", firstLineOf("/etc/machine-id"));
  return hash64({"found", boot, namespaceOf(procRoot, "net"), namespaceOf(procRoot, "ipc"),
                 namespaceOf(procRoot, "user")});
}

uint64_t processToken() {
  // A fork's child inherits `drawn`, hence the process id; a child in a new pid namespace may have its
  // parent's id, hence the namespace.
  return hash64({bytesOf(drawnNumber()), std::to_string(::getpid()), namespaceOf("/proc", "pid")});
}

}  // namespace topoccl
