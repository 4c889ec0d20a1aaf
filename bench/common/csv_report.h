// The table of --csv: a line for each row and direction that was run, under one line of names.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "common/options.h"
#include "common/results.h"

namespace topoccl::bench {

class CsvReport {
 public:
  // Creates options.csvFile, or FILE.0, FILE.1, ... if that exists; says so on stdout. Without a file
  // everything below does nothing. Throws Failure if it can't be made.
  CsvReport(const Options& options, std::string program, int ranks);

  void measurement(const Row& row, const Measurement& measurement, bool isInPlace);
  // Throws Failure if not everything was written.
  void finish();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
  std::string program_;
  int ranks_;
};

}  // namespace topoccl::bench
