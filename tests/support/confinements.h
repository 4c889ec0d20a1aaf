// What a process can be denied: each function takes it from the calling process and those it forks from then
// on, which are children of a test. False where the system does not let it.
#pragma once

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "support/deny_call.h"

namespace topoccl::test {

// ---- folders ----

// Mounts of its own from now on; nobody else sees what changes.
inline bool ownMounts() {
  return ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

// Puts an empty file system of `options` over a folder.
inline bool hide(const char* folder, const char* options = "size=64k", unsigned long flags = 0) {
  return ownMounts() && ::mount("none", folder, "tmpfs", flags, options) == 0;
}

inline bool tinySharedMemory() {
  return hide("/dev/shm");
}
inline bool readOnlySharedMemory() {
  return hide("/dev/shm", "size=4k", MS_RDONLY);
}
inline bool noDevices() {
  return hide("/dev");
}
inline bool noSys() {
  return hide("/sys");
}
inline bool noProc() {
  return hide("/proc");
}
inline bool readOnlyRoot() {
  return ownMounts() && ::mount("none", "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0 &&
         hide("/tmp", "size=4k", MS_RDONLY);
}

// ---- network ----

// A network with nothing but a loopback interface, where so many connections at most wait to be accepted.
inline bool ownNetwork(int queue) {
  if (::unshare(CLONE_NEWNET) != 0) return false;
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq loopback{};
  std::strcpy(loopback.ifr_name, "lo");
  loopback.ifr_flags = IFF_UP | IFF_RUNNING;
  const bool up = ::ioctl(socket, SIOCSIFFLAGS, &loopback) == 0;
  ::close(socket);
  const int setting = ::open("/proc/sys/net/core/somaxconn", O_WRONLY | O_CLOEXEC);
  const std::string text = std::to_string(queue);
  const bool set = ::write(setting, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(setting);
  return up && set;
}

// ---- limits ----

inline bool limitTo(__rlimit_resource resource, rlim_t value) {
  const rlimit both{value, value};
  return ::setrlimit(resource, &both) == 0;
}

inline bool noLockedMemory() {
  return limitTo(RLIMIT_MEMLOCK, 0);
}
inline bool oneCore() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(::sched_getcpu()), &one);
  return ::sched_setaffinity(0, sizeof(one), &one) == 0;
}
// Limits of processes do not hold for the superuser: a user that has none yet.
inline bool noMoreThreads() {
  constexpr uid_t kNobodysUser = 61234;
  return ::geteuid() == 0 && limitTo(RLIMIT_NPROC, 1) && ::setgid(kNobodysUser) == 0 &&
         ::setuid(kNobodysUser) == 0;
}

// ---- system calls ----

template <long number>
bool without() {
  return denyCall(number);
}

// fcntl with that command only.
inline bool denySeals() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args) + sizeof(uint64_t)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_ADD_SEALS, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof(program) / sizeof(program[0]), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

}  // namespace topoccl::test
