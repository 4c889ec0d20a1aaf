// Counts the system calls that the calling thread tries from now on. They are not carried out any more, but
// for those with which a thread ends.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>

namespace topoccl::test {

inline thread_local volatile uint64_t callsTried = 0;
inline thread_local volatile int lastCallTried = -1;

inline void countCall(int, siginfo_t* info, void*) {
  callsTried = callsTried + 1;
  lastCallTried = info->si_syscall;
}

// False where threads may not restrict themselves. Can't be undone: meant for a thread of its own, which then
// only computes and returns.
inline bool countCallsFromNowOn() {
  struct sigaction action {};
  action.sa_sigaction = countCall;
  action.sa_flags = SA_SIGINFO;
  if (::sigaction(SIGSYS, &action, nullptr) != 0) return false;
  constexpr uint32_t kAllowed[] = {SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_exit,
                                   SYS_exit_group,   SYS_madvise,        SYS_munmap};
  constexpr size_t kCount = sizeof(kAllowed) / sizeof(kAllowed[0]);
  sock_filter program[kCount + 3] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (size_t i = 0; i < kCount; ++i)
    program[1 + i] =
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kAllowed[i], static_cast<unsigned char>(kCount - i), 0);
  program[kCount + 1] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
  program[kCount + 2] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const sock_fprog filter{kCount + 3, program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

}  // namespace topoccl::test
