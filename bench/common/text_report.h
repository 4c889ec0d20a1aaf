// The report on stdout, character by character as nccl-tests prints it; --explain adds columns on the right.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "common/options.h"
#include "common/results.h"

namespace topoccl::bench {

class TextReport {
 public:
  TextReport(std::FILE* out, const Options& options) : out_(out), options_(options) {}

  void opening(const std::string& program, int libraryVersion) const;
  void devices(const std::vector<DeviceLine>& devices) const;
  void reducedMaxBytes(uint64_t bytes) const;
  void tableHead() const;
  void beginRow(const Row& row) const;
  void measurement(const Measurement& measurement, bool isInPlace) const;
  void endRow(const Row& row) const;
  void summary(const std::string& program, const Summary& summary) const;
  void memory(double bytes) const;
  void errors(const std::string& lastError) const;

 private:
  void iterationColumns(const Measurement& measurement) const;

  std::FILE* out_;
  const Options& options_;
};

// Slowest driver of each iteration, without the first `skip`.
std::vector<double> slowestIterations(const Measurement& measurement, int skip);

}  // namespace topoccl::bench
