#include "common/text_report.h"

#include <algorithm>

#include "common/number_text.h"
#include "common/statistics.h"

namespace topoccl::bench {
namespace {

constexpr const char* kVersion = "2.19.6";  // of nccl-tests, whose format this is

// Labels and units of one direction's columns.
struct Column {
  const char* label;
  const char* unit;
  int width;
};
constexpr Column kIterationColumns[] = {
    {"i_min", "(us)", 7}, {"i_max", "(us)", 7}, {"i_p99", "(us)", 7}, {"i_cv%", "(%)", 7}};
constexpr Column kPlanColumns[] = {
    {"algorithm", "", 16}, {"protocol", "", 8}, {"transport", "", 12}, {"channels", "", 8}};

std::string padded(const std::string& text, int width) {
  const auto size = static_cast<int>(text.size());
  return std::string(static_cast<size_t>(std::max(0, width - size)), ' ') + text;
}

// One heading line: labels or units of all columns.
template <class Pick>
std::string heading(const Options& options, Pick&& pick) {
  std::vector<Column> direction = {{options.reportCpuTime ? "cputime" : "time", "(us)", 7},
                                   {"algbw", "(GB/s)", 6},
                                   {"busbw", "(GB/s)", 6},
                                   {"#wrong", "", 6}};
  if (options.perIteration) {
    direction.insert(direction.end(), std::begin(kIterationColumns), std::end(kIterationColumns));
  }
  std::vector<Column> columns = {
      {"size", "(B)", 10}, {"count", "(elements)", 12}, {"type", "", 8}, {"redop", "", 6}, {"root", "", 6}};
  columns.insert(columns.end(), direction.begin(), direction.end());
  columns.insert(columns.end(), direction.begin(), direction.end());
  std::string line = "#";
  for (size_t i = 0; i < columns.size(); i++) {
    line += i == 0 ? " " : "  ";
    line += padded(pick(columns[i]), columns[i].width);
  }
  line += " ";
  if (options.timestamps) line += padded(pick(Column{"timestamp", "%Y-%m-%d %H:%M:%S", 19}), 19);
  if (options.explain) {
    for (const Column& column : kPlanColumns) line.append("  ").append(padded(pick(column), column.width));
  }
  return line + "\n";
}

std::string label(const Column& column) {
  return column.label;
}
std::string unit(const Column& column) {
  return column.unit;
}

}  // namespace

std::vector<double> slowestIterations(const Measurement& measurement, int skip) {
  std::vector<double> slowest;
  for (const std::vector<double>& driver : measurement.iterations) {
    slowest.resize(driver.size());
    for (size_t i = 0; i < driver.size(); i++) slowest[i] = std::max(slowest[i], driver[i]);
  }
  const size_t skipped = std::min(slowest.size(), static_cast<size_t>(skip));
  return {slowest.begin() + static_cast<std::ptrdiff_t>(skipped), slowest.end()};
}

void TextReport::opening(const std::string& program, int libraryVersion) const {
  const Options& o = options_;
  const bool isFactor = o.stepFactor > 1;
  std::fprintf(out_, "# nccl-tests version %s nccl-headers=%d nccl-library=%d\n", kVersion, NCCL_VERSION_CODE,
               libraryVersion);
  std::fprintf(out_, "# Collective test starting: %s\n", program.c_str());
  std::fprintf(out_,
               "# nThread %d nGpus %d minBytes %ld maxBytes %ld step: %ld(%s) warmup iters: %d iters: %d agg "
               "iters: %d validation: %d graph: %d unalign: %d\n",
               o.threads, o.devicesPerThread, static_cast<long>(o.minBytes), static_cast<long>(o.maxBytes),
               static_cast<long>(isFactor ? o.stepFactor : o.stepBytes), isFactor ? "factor" : "bytes",
               o.warmups, o.iterations, o.aggregated, o.checks, 0, static_cast<int>(o.unalign));
  constexpr const char* kBlocking[] = {
      nullptr, "# Blocking Enabled: wait and barrier after each inner iteration (-m) \n",
      "# Blocking Enabled: wait after each inner iteration (-m), no barrier \n",
      "# Blocking Enabled: wait and barrier after each outer iteration (-n) \n"};
  const char* blocking = kBlocking[static_cast<int>(o.blocking)];
  if (blocking != nullptr) std::fputs(blocking, out_);
  if (o.perIteration)
    std::fputs("# Per-Iteration Report: host timing; i_* uses max over process rows \n", out_);
  if (o.parallelInit) {
    std::fputs("# Parallel Init Enabled: threads call into NcclInitRank concurrently \n", out_);
  }
  std::fputs("#\n", out_);
}

void TextReport::devices(const std::vector<DeviceLine>& devices) const {
  std::fputs("# Using devices\n", out_);
  for (const DeviceLine& d : devices) {
    std::fprintf(out_, "#  Rank %2d Group %2d Pid %6d on %10s device %2d [%s] %s\n", d.rank, d.group, d.pid,
                 d.host, d.device, d.busId, d.name);
  }
}

void TextReport::reducedMaxBytes(uint64_t bytes) const {
  std::fprintf(out_, "#\n# Reducing maxBytes to %ld due to memory limitation\n", static_cast<long>(bytes));
}

void TextReport::tableHead() const {
  std::fputs("#\n", out_);
  std::fprintf(out_, "# %10s  %12s  %8s  %6s  %6s%s\n", "", "", "", "", "",
               options_.perIteration
                   ? "              out-of-place (+ per-iteration)                            "
                     "    in-place (+ per-iteration)"
                   : "           out-of-place                       in-place          ");
  std::fputs(heading(options_, label).c_str(), out_);
  std::fputs(heading(options_, unit).c_str(), out_);
}

void TextReport::beginRow(const Row& row) const {
  std::fprintf(out_, "%12li  %12li  %8s  %6s  %6i", static_cast<long>(row.bytes),
               static_cast<long>(row.count), row.type.c_str(), row.op.c_str(), row.root);
  std::fflush(out_);
}

void TextReport::measurement(const Measurement& m, bool isInPlace) const {
  std::fprintf(out_, "  %7s  %6s  %6s", fitNumber(m.microseconds, 7).c_str(),
               fitNumber(m.algorithmBandwidth, 6).c_str(), fitNumber(m.busBandwidth, 6).c_str());
  if (m.wrong) {
    std::fprintf(out_, "  %6g", static_cast<double>(*m.wrong));
  } else {
    std::fputs("    N/A", out_);
  }
  if (options_.perIteration) iterationColumns(m);
  if (isInPlace && options_.timestamps) std::fprintf(out_, "%21s", timeOfDay().c_str());
  std::fflush(out_);
}

void TextReport::iterationColumns(const Measurement& m) const {
  const Statistics s = summarize(slowestIterations(m, options_.perIterationSkip));
  for (const double value : {s.minimum, s.maximum, s.p99, s.variationPercent}) {
    std::fprintf(out_, "  %7s", fitNumber(m.isRun() ? value : Measurement::kNotRun, 7).c_str());
  }
}

void TextReport::endRow(const Row& row) const {
  if (row.plan) {
    const topocclPlan_t& plan = *row.plan;
    std::fprintf(out_, "   %16s  %8s  %12s  %8d", plan.algorithm, plan.protocol, plan.transport,
                 plan.channels);
  }
  std::fputs("\n", out_);
  std::fflush(out_);
}

void TextReport::summary(const std::string& program, const Summary& summary) const {
  std::fprintf(out_, "# %-20s : %d %s\n", "Out of bounds values", summary.failedChecks,
               summary.failedChecks != 0 ? "FAILED" : "OK");
  const char* verdict = summary.wantedBandwidth < 0 ? "" : summary.isFastEnough() ? "OK" : "FAILED";
  std::fprintf(out_, "# %-20s : %g %s\n", "Avg bus bandwidth", summary.averageBusBandwidth, verdict);
  std::fputs("#\n", out_);
  std::fprintf(out_, "# Collective test concluded: %s\n", program.c_str());
}

void TextReport::memory(double bytes) const {
  std::fprintf(out_, "# %-20s : %s\n", "Memory usage", sizeWithUnit(bytes).c_str());
}

void TextReport::errors(const std::string& lastError) const {
  std::fputs("#\n", out_);
  if (lastError.empty()) {
    std::fputs("\n", out_);
  } else {
    std::fprintf(out_, "# error: %s\n", lastError.c_str());
  }
  std::fflush(out_);
}

}  // namespace topoccl::bench
