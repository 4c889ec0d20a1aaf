#include "common/csv_report.h"

#include <cerrno>
#include <cstring>

#include "common/failure.h"
#include "common/new_file.h"

namespace topoccl::bench {

CsvReport::CsvReport(const Options& options, std::string program, int ranks)
    : program_(std::move(program)), ranks_(ranks) {
  if (options.csvFile.empty()) return;
  file_.reset(createNewFile(options.csvFile, "CSV"));
  std::fputs(
      "program,ranks,size,count,type,redop,root,direction,time_us,algbw_gbps,busbw_gbps,wrong,algorithm,"
      "protocol,transport,channels\n",
      file_.get());
}

// What is not known stays empty: #wrong of an unchecked row, the plan without --explain.
void CsvReport::measurement(const Row& row, const Measurement& m, bool isInPlace) {
  if (!file_) return;
  std::fprintf(file_.get(), "%s,%d,%llu,%llu,%s,%s,%d,%s,%.9g,%.9g,%.9g,", program_.c_str(), ranks_,
               static_cast<unsigned long long>(row.bytes), static_cast<unsigned long long>(row.count),
               row.type.c_str(), row.op.c_str(), row.root, isInPlace ? "in_place" : "out_of_place",
               m.microseconds, m.algorithmBandwidth, m.busBandwidth);
  if (m.wrong) std::fprintf(file_.get(), "%llu", static_cast<unsigned long long>(*m.wrong));
  if (row.plan) {
    std::fprintf(file_.get(), ",%s,%s,%s,%d\n", row.plan->algorithm, row.plan->protocol, row.plan->transport,
                 row.plan->channels);
  } else {
    std::fputs(",,,,\n", file_.get());
  }
  std::fflush(file_.get());
}

void CsvReport::finish() {
  if (!file_) return;
  const bool isWritten = std::ferror(file_.get()) == 0;
  const bool isClosed = std::fclose(file_.release()) == 0;
  if (!isWritten || !isClosed)
    throw Failure(ExitCode::InternalError, std::string("writing the CSV report: ") + std::strerror(errno));
}

}  // namespace topoccl::bench
