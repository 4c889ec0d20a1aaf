#include "base/limits.h"

#include <sys/resource.h>

#include <cerrno>
#include <optional>

#include "base/error.h"

namespace topoccl {
namespace {

// Nothing where there is none.
std::optional<rlim_t> limit(__rlimit_resource resource) {
  rlimit both{};
  if (::getrlimit(resource, &both) != 0 || both.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return both.rlim_cur;
}

}  // namespace

std::string limitBehind(int error) {
  if (error == EMFILE)
    if (const auto most = limit(RLIMIT_NOFILE))
      return concat("; this process may have ", *most,
                    " descriptors open (ulimit -n), and a communicator needs up to 4 for each of its ranks");
  if (error == EFBIG)
    if (const auto most = limit(RLIMIT_FSIZE))
      return concat("; this process may write files of ", *most,
                    " bytes (ulimit -f), which holds for shared memory too");
  if (error == ENOMEM)
    if (const auto most = limit(RLIMIT_AS))
      return concat("; this process may use ", *most, " bytes of addresses (ulimit -v)");
  return "";
}

std::string limitOfThreads() {
  std::string text;
  if (const auto most = limit(RLIMIT_NPROC))
    text = concat("; this user may have ", *most,
                  " threads (ulimit -u), and the library needs one for each unique id, stream and init in "
                  "the background, and for each init of a group");
  return text + limitBehind(ENOMEM);  // stacks take addresses
}

}  // namespace topoccl
