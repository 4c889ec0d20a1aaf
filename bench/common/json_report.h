// The report of -J, with nccl-tests' keys. Built in memory, written by finish() or, after a failure, by the
// destructor; the file is made at once, so that a bad path shows before the run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/options.h"
#include "common/results.h"

namespace topoccl::bench {

class JsonReport {
 public:
  // Creates options.outputFile, or FILE.0, FILE.1, ... if that exists; says so on stdout. With no output
  // file, or one that can't be made, everything below does nothing.
  JsonReport(const Options& options, int argumentCount, char** arguments, int libraryVersion);
  ~JsonReport();
  JsonReport(const JsonReport&) = delete;
  JsonReport& operator=(const JsonReport&) = delete;

  void config(const Options& options, const std::vector<DeviceLine>& devices);
  void beginRow(const Row& row);
  void measurement(const Measurement& measurement, bool isInPlace);
  void endRow(const Row& row, const std::string& program);
  void summary(const Summary& summary);
  void finish(const std::vector<std::string>& errors);

 private:
  struct Document;  // keeps the JSON library out of this header
  std::unique_ptr<Document> document_;
};

}  // namespace topoccl::bench
