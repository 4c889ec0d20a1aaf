#include "device/local_devices.h"

#include <algorithm>
#include <bit>
#include <sstream>

#include "base/system_file.h"
#include "device/host.h"

namespace topoccl {
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
  std::istringstream cpuinfo(readSystemFile("/proc/cpuinfo"));
  const std::string name = processorName(cpuinfo);
  std::vector<LocalDevice> devices;
  const std::vector<uint64_t> cores = allowedCores();
  for (size_t core = 0; core < cores.size() * 64; ++core)
    if ((cores[core / 64] >> core % 64 & 1) != 0) devices.push_back({static_cast<int>(core), name});
  return devices;
}

int localDeviceCount() {
  int count = 0;
  for (const uint64_t word : allowedCores()) count += std::popcount(word);
  return std::max(1, count);
}

}  // namespace topoccl
