#include "kernels/fence.h"

#include <linux/membarrier.h>
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
  ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0);
  errno = saved;
}

}  // namespace topoccl
