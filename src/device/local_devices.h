// Devices of this host that the calling process may use. For now: CPU cores.
#pragma once

#include <istream>
#include <string>
#include <vector>

namespace topoccl {

struct LocalDevice {
  int core;          // the operating system's number
  std::string name;  // processor model
};

// Cores in the calling thread's affinity mask, ascending.
std::vector<LocalDevice> localDevices();

// Their number, at least 1: also where the system does not say which cores there are.
int localDeviceCount();

// The processor model in text of the form of /proc/cpuinfo; "CPU" where it names none.
std::string processorName(std::istream& cpuinfo);

}  // namespace topoccl
