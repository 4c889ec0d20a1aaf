#include "common/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace topoccl::bench {
namespace {

// The smallest sample that at least `percent` of all samples do not exceed.
double percentile(const std::vector<double>& sorted, size_t percent) {
  const size_t rank = (sorted.size() * percent + 99) / 100;
  return sorted[std::min(sorted.size(), std::max<size_t>(rank, 1)) - 1];
}

}  // namespace

Statistics summarize(std::vector<double> samples) {
  Statistics result;
  if (samples.empty()) return result;
  std::sort(samples.begin(), samples.end());
  const auto count = static_cast<double>(samples.size());
  result.minimum = samples.front();
  result.maximum = samples.back();
  result.p50 = samples[samples.size() / 2];
  result.p95 = percentile(samples, 95);
  result.p99 = percentile(samples, 99);
  result.average = std::accumulate(samples.begin(), samples.end(), 0.0) / count;
  double squares = 0;
  for (const double sample : samples) squares += (sample - result.average) * (sample - result.average);
  result.deviation = std::sqrt(squares / count);
  if (result.average > 0) result.variationPercent = 100 * result.deviation / result.average;
  return result;
}

}  // namespace topoccl::bench
