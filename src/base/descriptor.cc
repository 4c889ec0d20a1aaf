#include "base/descriptor.h"

#include <unistd.h>

#include <cerrno>

namespace topoccl {

void Descriptor::reset() noexcept {
  if (value_ < 0) return;
  const int saved = errno;
  // Linux has released the number even when close reports EINTR: closing again could hit somebody else's.
  ::close(release());
  errno = saved;
}

}  // namespace topoccl
