#include "kernels/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

namespace topoccl {

void wake(Doorbell& doorbell) {
  const int saved = errno;
  fetchAdd(&doorbell.bell, 1U);
  // Not FUTEX_PRIVATE: the sleeper may be another process.
  ::syscall(SYS_futex, &doorbell.bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  errno = saved;
}

}  // namespace topoccl
