#include "common/host_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace topoccl::bench {
namespace {

uint64_t memAvailable() {
  std::ifstream file("/proc/meminfo");
  uint64_t kilobytes = 0;
  for (std::string key; file >> key;) {
    if (key == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
  }
  return UINT64_MAX;
}

// The root group of the process's view; "max" and missing files mean no limit.
uint64_t groupHeadroom() {
  uint64_t limit = 0;
  uint64_t used = 0;
  std::ifstream limitFile("/sys/fs/cgroup/memory.max");
  std::ifstream usedFile("/sys/fs/cgroup/memory.current");
  if (!(limitFile >> limit) || !(usedFile >> used)) return UINT64_MAX;
  return limit > used ? limit - used : 0;
}

}  // namespace

uint64_t availableMemory() {
  return std::min(memAvailable(), groupHeadroom());
}

double peakMemory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

}  // namespace topoccl::bench
