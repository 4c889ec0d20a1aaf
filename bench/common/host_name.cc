#include <unistd.h>

#include <cstring>

#include "common/failure.h"

namespace topoccl::bench {

std::string hostName() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0) return "unknown";
  return std::string(name, strcspn(name, "."));
}

}  // namespace topoccl::bench
