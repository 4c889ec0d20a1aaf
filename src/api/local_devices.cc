#include "api/local_devices.h"

#include <sched.h>

#include <cerrno>
#include <fstream>

#include "base/error.h"

namespace topoccl::api {
namespace {

// cpu_set_t holds 1024 cores; larger machines need a larger set, and the kernel says so by EINVAL.
std::vector<int> allowedCores() {
  for (int capacity = 1024; capacity <= 1 << 20; capacity *= 2) {
    const auto words = static_cast<size_t>(capacity) / (8 * sizeof(unsigned long));
    std::vector<unsigned long> mask(words);
    auto* set = reinterpret_cast<cpu_set_t*>(mask.data());
    const size_t bytes = words * sizeof(unsigned long);
    if (sched_getaffinity(0, bytes, set) != 0) {
      if (errno == EINVAL) continue;
      throwSystemError("asking for the cores this process may use", errno);
    }
    std::vector<int> cores;
    for (int core = 0; core < capacity; core++) {
      if (CPU_ISSET_S(static_cast<size_t>(core), bytes, set)) cores.push_back(core);
    }
    return cores;
  }
  throwSystemError("asking for the cores this process may use", EINVAL);
}

}  // namespace

std::string processorName(std::istream& cpuinfo) {
  // x86 says "model name", some other architectures "Processor" or "cpu model".
  for (std::string line; std::getline(cpuinfo, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    if (key != "model name" && key != "Processor" && key != "cpu model") continue;
    const size_t start = line.find_first_not_of(" \t", colon + 1);
    if (start != std::string::npos) return line.substr(start);
  }
  return "CPU";
}

std::vector<LocalDevice> localDevices() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  const std::string name = processorName(cpuinfo);
  std::vector<LocalDevice> devices;
  for (const int core : allowedCores()) devices.push_back({core, name});
  return devices;
}

}  // namespace topoccl::api
