#include "kernels/fence.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace topoccl {

bool registerForFencing() {
  const int saved = errno;
  const bool registered = ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0) == 0;
  errno = saved;
  return registered;
}

void fenceEverybody() {
  const int saved = errno;
  // It may fail for lack of memory, which passes.
  while (::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0) != 0 && errno == ENOMEM)
    ::sched_yield();
  errno = saved;
}

}  // namespace topoccl
