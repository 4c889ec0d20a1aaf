// The table: for every type, operator, root and size, time and check out of place and in place. One Sweep
// per driver, all in step.
#pragma once

#include <string>
#include <vector>

#include "common/board.h"
#include "common/checker.h"
#include "common/csv_report.h"
#include "common/json_report.h"
#include "common/local_ranks.h"
#include "common/options.h"
#include "common/results.h"
#include "common/text_report.h"
#include "common/watchdog.h"

namespace topoccl::bench {

// Where driver 0 reports; null for the others.
struct Reports {
  const TextReport* text = nullptr;
  JsonReport* json = nullptr;
  CsvReport* csv = nullptr;
};

class Sweep {
 public:
  Sweep(const Options& options, uint64_t maxBytes, const LocalRanks& ranks, Board& board, Reports reports);

  // Equal on all drivers.
  Summary run();

 private:
  struct Combination {
    ncclDataType_t type;
    int op;
  };

  std::vector<Combination> combinations();
  bool isSupported(Combination combination, std::string& reason);
  void runCombination(Combination combination, int root);
  void warmUp(Combination combination, int root);
  void runRow(uint64_t bytes, Combination combination, int root);
  Measurement measure(const Work& work, bool isInPlace);
  double timeLoop(const Work& work, bool isInPlace, std::vector<double>& iterations) const;
  void iteration(const Work& work, bool isInPlace, int number) const;
  double overDrivers(double mine);
  std::vector<std::vector<double>> gatherIterations(const std::vector<double>& mine);
  void checkRow(const Work& work, bool isInPlace, Measurement& measurement);
  uint64_t nextSize(uint64_t bytes) const;

  const Options& options_;
  uint64_t maxBytes_;
  const LocalRanks& ranks_;
  Board& board_;
  Reports reports_;
  Checker checker_;
  Watchdog watchdog_;
  const double wantedBandwidth_;  // GB/s; below 0: any
  uint64_t seed_ = 0;
  int failedChecks_ = 0;
  double bandwidthSum_ = 0;
  int bandwidthCount_ = 0;
};

}  // namespace topoccl::bench
