// The report, compared with lines as scripts that read nccl-tests expect them.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "common/json_report.h"
#include "common/text_report.h"

namespace topoccl::bench {
namespace {

// What `write(report)` prints.
template <class Write>
std::string printed(const Options& options, Write&& write) {
  char* text = nullptr;
  size_t bytes = 0;
  std::FILE* out = open_memstream(&text, &bytes);
  write(TextReport(out, options));
  std::fclose(out);
  std::string result(text, bytes);
  free(text);
  return result;
}

Measurement measurement() {
  Measurement m;
  m.microseconds = 12.345;
  m.algorithmBandwidth = 1.5;
  m.busBandwidth = 2.25;
  m.wrong = 0;
  return m;
}

Row row() {
  Row r;
  r.bytes = 1024;
  r.count = 256;
  r.type = "float";
  r.op = "sum";
  return r;
}

TEST(TextReport, RowsKeepTheColumns) {
  const std::string text = printed(Options{}, [](const TextReport& report) {
    report.beginRow(row());
    report.measurement(measurement(), false);
    Measurement unchecked = measurement();
    unchecked.wrong.reset();
    report.measurement(unchecked, true);
    report.endRow(row());
  });
  EXPECT_EQ(
      text,
      "        1024           256     float     sum      -1    12.35    1.50    2.25       0    12.35    1.50"
      "    2.25    N/A\n");
}

TEST(TextReport, TheTableHeadIsNcclTests) {
  EXPECT_EQ(
      printed(Options{}, [](const TextReport& report) { report.tableHead(); }),
      "#\n"
      "#                                                              out-of-place                       "
      "in-place          \n"
      "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   "
      "algbw "
      "  busbw  #wrong \n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)"
      "  (GB/s)         \n");
}

TEST(TextReport, OpeningAndDevicesAreNcclTests) {
  Options options;
  options.minBytes = 8;
  options.stepFactor = 2;
  DeviceLine device;
  device.rank = 1;
  device.pid = 77;
  device.device = 1;
  std::snprintf(device.host, sizeof device.host, "box");
  std::snprintf(device.name, sizeof device.name, "Some CPU");
  const std::string text = printed(options, [&](const TextReport& report) {
    report.opening("all_reduce_perf", 23203);
    report.devices({device});
  });
  EXPECT_EQ(text,
            "# nccl-tests version 2.19.6 nccl-headers=23203 nccl-library=23203\n"
            "# Collective test starting: all_reduce_perf\n"
            "# nThread 1 nGpus 1 minBytes 8 maxBytes 33554432 step: 2(factor) warmup iters: 1 iters: 20 agg "
            "iters: 1 "
            "validation: 1 graph: 0 unalign: 0\n"
            "#\n"
            "# Using devices\n"
            "#  Rank  1 Group  0 Pid     77 on        box device  1 [0000:00:00] Some CPU\n");
}

TEST(TextReport, TheSummaryJudgesDataAndBandwidth) {
  const auto summary = [](const Summary& s) {
    return printed(Options{}, [&](const TextReport& report) { report.summary("all_reduce_perf", s); });
  };
  EXPECT_EQ(summary({0, 1.5, -1}),
            "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.5 \n#\n"
            "# Collective test concluded: all_reduce_perf\n");
  EXPECT_NE(summary({2, 1.5, -1}).find(": 2 FAILED\n"), std::string::npos);
  EXPECT_NE(summary({0, 1.5, 1.6}).find(": 1.5 OK\n"), std::string::npos);
  EXPECT_NE(summary({0, 1.5, 2}).find(": 1.5 FAILED\n"), std::string::npos);
}

TEST(TextReport, ExplainAndIterationColumnsStandUnderTheirHeads) {
  Options options;
  options.explain = true;
  options.perIteration = true;
  const std::string text = printed(options, [&](const TextReport& report) {
    report.tableHead();
    Row r = row();
    r.plan = topocclPlan_t{"ring", "bulk", "shm", 2, 4, 65536};
    Measurement m = measurement();
    m.iterations = {{1, 2, 3}, {4, 1, 1}};
    report.beginRow(r);
    report.measurement(m, false);
    report.measurement(m, true);
    report.endRow(r);
  });
  std::istringstream lines(text);
  std::string rule, over, labels, units, values;
  for (std::string* line : {&rule, &over, &labels, &units, &values}) std::getline(lines, *line);
  EXPECT_EQ(labels.size(), values.size()) << text;
  EXPECT_EQ(labels.size(), units.size());
  EXPECT_EQ(labels.find("channels") + 8, values.find_last_of('2') + 1);
  EXPECT_EQ(labels.find("algorithm") + 9, values.find("ring") + 4);
  EXPECT_EQ(labels.find("i_max") + 5, values.find("   4.00") + 7) << "slowest driver of each iteration";
}

TEST(TextReport, AWayThatWasNotRunHasNoNumbers) {
  const std::string text =
      printed(Options{}, [](const TextReport& report) { report.measurement(Measurement{}, true); });
  EXPECT_EQ(text, "      nan     nan     nan    N/A");
  Options options;
  options.perIteration = true;
  const std::string iterations =
      printed(options, [](const TextReport& report) { report.measurement(Measurement{}, true); });
  EXPECT_EQ(iterations, text + "      nan      nan      nan      nan");
}

TEST(JsonReport, HasNcclTestsKeysAndNeverOverwrites) {
  char name[] = "/tmp/json_report_test.XXXXXX";
  const std::string directory = mkdtemp(name);
  Options options;
  options.outputFile = directory + "/a.json";
  { std::ofstream(options.outputFile) << "mine"; }
  char program[] = "bench";
  char* arguments[] = {program, nullptr};
  {
    JsonReport report(options, 1, arguments, 23203);
    report.config(options, {DeviceLine{}});
    report.beginRow(row());
    Measurement m = measurement();
    report.measurement(m, false);
    m.wrong.reset();
    report.measurement(m, true);
    report.endRow(row(), "all_reduce_perf");
    report.summary({1, 2.5, -1});
    report.finish({"none"});
  }
  std::string kept;
  std::ifstream(options.outputFile) >> kept;
  EXPECT_EQ(kept, "mine");
  std::stringstream text;
  text << std::ifstream(options.outputFile + ".0").rdbuf();
  for (const char* part :
       {"\"version\": 2", "\"nccl_version\": 23203", "\"minimum_bytes\"", "\"step_bytes\"", "\"devices\"",
        "\"device_hex\": \"0000:00:00\"", "\"size\": 1024", "\"root\": \"    -1\"", "\"out_of_place\"",
        "\"nwrong\": 0.0", "\"nwrong\": null", "\"experiment_name\": \"all_reduce_perf\"",
        "\"okay\": \"false\"", "\"okay\": \"unchecked\"", "\"end_time\""}) {
    EXPECT_NE(text.str().find(part), std::string::npos) << part;
  }
  unlink((options.outputFile + ".0").c_str());
  unlink(options.outputFile.c_str());
  rmdir(directory.c_str());
}

}  // namespace
}  // namespace topoccl::bench
