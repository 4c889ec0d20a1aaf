// Statistics of a series of times, as nccl-tests' -I defines them.
#pragma once

#include <vector>

namespace topoccl::bench {

struct Statistics {
  double minimum = 0;
  double maximum = 0;
  double average = 0;
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
  double deviation = 0;         // of the population
  double variationPercent = 0;  // 100 * deviation / average
};

// Of at least one sample; all zero for none.
Statistics summarize(std::vector<double> samples);

}  // namespace topoccl::bench
