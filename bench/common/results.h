// What a bench measures, as plain values.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "topoccl.h"

namespace topoccl::bench {

// A line of the device list. Trivially copyable: ranks gather it on the board.
struct DeviceLine {
  int rank = 0;
  int group = 0;
  int pid = 0;
  int device = 0;
  char host[64] = {};
  char busId[16] = "0000:00:00";  // PCI domain:bus:device; CPU cores have none
  char name[112] = {};
};

// One way (out of place or in place) of one row; as it is made, of a way that the collective does not have.
struct Measurement {
  static constexpr double kNotRun = std::numeric_limits<double>::quiet_NaN();
  double microseconds = kNotRun;        // what the time column shows
  double algorithmBandwidth = kNotRun;  // GB/s
  double busBandwidth = kNotRun;        // GB/s
  std::optional<uint64_t> wrong;        // elements over all ranks; nothing if unchecked
  // With -I: per driver, the time of each iteration in microseconds.
  std::vector<std::vector<double>> iterations;

  bool isRun() const { return !std::isnan(microseconds); }
};

struct Row {
  uint64_t bytes = 0;
  uint64_t count = 0;
  std::string type;
  std::string op = "none";
  int root = -1;
  std::optional<topocclPlan_t> plan;  // with --explain
};

struct Summary {
  int failedChecks = 0;  // nccl-tests' "out of bounds values"
  double averageBusBandwidth = 0;
  double wantedBandwidth = -1;  // NCCL_TESTS_MIN_BW; negative: none

  bool isFastEnough() const { return averageBusBandwidth >= wantedBandwidth * 0.9; }
};

}  // namespace topoccl::bench
