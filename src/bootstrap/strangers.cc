#include "bootstrap/strangers.h"

#include <sys/resource.h>

#include <algorithm>

namespace topoccl {
namespace {

constexpr size_t kMaxStrangers = 512, kMinStrangers = 8;
constexpr size_t kStrangersShare = 4;  // they get at most 1 / kStrangersShare of the process's descriptors

}  // namespace

size_t strangersLimit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return kMaxStrangers;
  return std::clamp<size_t>(files.rlim_cur / kStrangersShare, kMinStrangers, kMaxStrangers);
}

}  // namespace topoccl
