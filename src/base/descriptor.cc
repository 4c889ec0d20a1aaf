#include "base/descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace topoccl {

int Descriptor::aboveStandard(int value) noexcept {
  if (value < 0 || value > STDERR_FILENO) return value;
  const int moved = ::fcntl(value, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(value);
  errno = error;
  return moved;
}

void Descriptor::reset() noexcept {
  if (value_ < 0) return;
  const int saved = errno;
  // Linux has released the number even when close reports EINTR: closing again could hit somebody else's.
  ::close(release());
  errno = saved;
}

}  // namespace topoccl
