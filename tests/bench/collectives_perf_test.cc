// Every bench as a program, on every way to have ranks.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "bench/shell.h"

namespace topoccl::bench {
namespace {

struct Bench {
  const char* program;
  bool reduces;
  bool hasRoot;
  bool runsInPlace;
  double busFactor;  // of 3 ranks
  size_t blocks;     // a row of 1008 bytes on 3 ranks: the call's count is 252 / blocks
};

constexpr Bench kBenches[] = {
    {"all_reduce_perf", true, false, true, 4.0 / 3, 1},
    {"all_gather_perf", false, false, true, 2.0 / 3, 3},
    {"reduce_scatter_perf", true, false, true, 2.0 / 3, 3},
    {"broadcast_perf", false, true, true, 1, 1},
    {"reduce_perf", true, true, true, 1, 1},
    {"alltoall_perf", false, false, false, 2.0 / 3, 3},
    {"alltoallv_perf", false, false, false, 2.0 / 3, 1},
    {"gather_perf", false, true, true, 2.0 / 3, 3},
    {"scatter_perf", false, true, true, 2.0 / 3, 3},
    {"sendrecv_perf", false, false, false, 1, 1},
};

bool isReduced() {
  return std::getenv("TOPOCCL_TEST_REDUCED") != nullptr;
}

class EveryBench : public testing::TestWithParam<Bench> {
 protected:
  Outcome perf(const std::string& arguments, const std::string& environment = "") const {
    return shell("env " + environment + " \"" BENCH_DIRECTORY "/" + GetParam().program + "\" -n 2 -w 0 " +
                 arguments);
  }
};
INSTANTIATE_TEST_SUITE_P(Perf, EveryBench, testing::ValuesIn(kBenches),
                         [](const auto& tested) { return std::string(tested.param.program); });

// A file with a blank in its name, in a directory that ends with this.
class ReportFile {
 public:
  explicit ReportFile(const std::string& name) {
    char directory[] = "/tmp/collectives_perf_test.XXXXXX";
    directory_ = mkdtemp(directory);
    path_ = directory_ + "/" + name;
  }
  ~ReportFile() {
    unlink(path_.c_str());
    rmdir(directory_.c_str());
  }
  ReportFile(const ReportFile&) = delete;
  ReportFile& operator=(const ReportFile&) = delete;

  std::string quoted() const { return "\"" + path_ + "\""; }
  std::ifstream open() const { return std::ifstream(path_); }

 private:
  std::string directory_;
  std::string path_;
};

TEST_P(EveryBench, FindsEveryElementRight) {
  for (const int ranks : isReduced() ? std::vector{3} : std::vector{1, 2, 3, 5}) {
    for (const char* way : {"--ranks ", "-t ", "-g "}) {
      const std::string arguments = way + std::to_string(ranks) + " -b 4 -e 64K -f 16 -r all";
      const Outcome run = perf(arguments);
      EXPECT_EQ(run.code, 0) << arguments << run.text << run.errors;
      const std::vector<TableRow> rows = table(run.text);
      EXPECT_EQ(rows.size(), 4U * static_cast<size_t>(GetParam().hasRoot ? ranks : 1)) << run.text;
      for (const TableRow& row : rows) {
        EXPECT_EQ(row.wrong[0], "0") << arguments << run.text;
        EXPECT_EQ(row.wrong[1], GetParam().runsInPlace ? "0" : "N/A") << arguments << run.text;
      }
    }
  }
}

TEST_P(EveryBench, RunsEveryTypeAndOperator) {
  const bool every = !isReduced();
  const Outcome run =
      perf(std::string("--ranks 3 -b 1008 -e 1008 -o all -d ") + (every ? "all" : "bfloat16"));
  EXPECT_EQ(run.code, 0) << run.text;
  EXPECT_EQ(run.errors, "") << "nothing is left out";
  EXPECT_EQ(table(run.text).size(), (every ? 12U : 1U) * (GetParam().reduces ? 6U : 1U)) << run.text;
}

TEST_P(EveryBench, FindsAnInjectedFaultOnEveryRank) {
  for (const char* way : {"--ranks 2", "-t 2", "-g 2"}) {
    for (const char* fault : {"0:20:0", "1:20:0"}) {
      const Outcome run =
          perf(std::string(way) + " -b 1K -e 1K", std::string("TOPOCCL_BENCH_INJECT=") + fault);
      EXPECT_EQ(run.code, 7) << way << run.text << run.errors;
      const std::vector<TableRow> rows = table(run.text);
      ASSERT_EQ(rows.size(), 1U) << run.text << run.errors;
      EXPECT_EQ(rows[0].wrong[0], "1") << way << " " << fault;
      EXPECT_EQ(rows[0].wrong[1], GetParam().runsInPlace ? "1" : "N/A") << way << " " << fault;
    }
  }
}

TEST_P(EveryBench, WritesNcclTestsJson) {
  const ReportFile file("the report.json");
  ASSERT_EQ(perf("--ranks 3 -b 1008 -e 1008 -J " + file.quoted()).code, 0);
  const auto report = nlohmann::json::parse(file.open());
  ASSERT_EQ(report.at("results").size(), 1U);
  const auto& row = report["results"][0];
  EXPECT_EQ(row.at("size"), 1008);
  EXPECT_EQ(row.at("count"), 252 / GetParam().blocks);
  EXPECT_EQ(row.at("type"), "float");
  EXPECT_EQ(row.at("redop"), GetParam().reduces ? "sum" : "none");
  EXPECT_EQ(std::stoi(row.at("root").get<std::string>()), GetParam().hasRoot ? 0 : -1);
  EXPECT_EQ(row.at("experiment_name"), GetParam().program);
  const auto& outOfPlace = row.at("out_of_place");
  EXPECT_EQ(outOfPlace.at("nwrong"), 0);
  const double seconds = outOfPlace.at("time").get<double>() / 1e6;
  const double algorithmBandwidth = outOfPlace.at("alg_bw");
  EXPECT_NEAR(algorithmBandwidth * 1e9 * seconds, 1008, 1e-6);
  EXPECT_NEAR(outOfPlace.at("bus_bw").get<double>() / algorithmBandwidth, GetParam().busFactor, 1e-9);
  const auto& inPlace = row.at("in_place");
  EXPECT_EQ(inPlace.at("time").is_number(), GetParam().runsInPlace) << inPlace;
  if (GetParam().runsInPlace) return;
  EXPECT_EQ(inPlace.at("time"), "nan");
  EXPECT_TRUE(inPlace.at("nwrong").is_null());
  EXPECT_EQ(report.at("average_bus_bandwidth").at("bandwidth"), outOfPlace.at("bus_bw"));
}

std::vector<std::string> fieldsOf(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream rest(line);
  for (std::string field; std::getline(rest, field, ',');) fields.push_back(field);
  return fields;
}

// By the names in the first line.
std::vector<std::map<std::string, std::string>> readCsv(std::istream& file) {
  std::vector<std::map<std::string, std::string>> rows;
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> names = fieldsOf(line);
  while (std::getline(file, line)) {
    const std::vector<std::string> fields = fieldsOf(line);
    EXPECT_EQ(fields.size(), names.size()) << line;
    rows.emplace_back();
    for (size_t i = 0; i < fields.size() && i < names.size(); i++) rows.back()[names[i]] = fields[i];
  }
  return rows;
}

TEST_P(EveryBench, WritesCsvWithItsPlan) {
  const ReportFile file("the report.csv");
  const Outcome run = perf("--ranks 3 -b 1008 -e 2016 -f 2 --explain --csv " + file.quoted());
  ASSERT_EQ(run.code, 0) << run.text << run.errors;
  std::ifstream text = file.open();
  const auto rows = readCsv(text);
  ASSERT_EQ(rows.size(), GetParam().runsInPlace ? 4U : 2U);
  for (const auto& row : rows) {
    EXPECT_EQ(row.at("program"), GetParam().program);
    EXPECT_EQ(row.at("ranks"), "3");
    EXPECT_EQ(row.at("wrong"), "0");
    EXPECT_GT(std::stod(row.at("time_us")), 0);
    EXPECT_NE(row.at("algorithm"), "");
    EXPECT_EQ(row.at("transport"), "shm");
    EXPECT_GE(std::stoi(row.at("channels")), 1);
  }
  EXPECT_EQ(rows.front().at("size"), "1008");
  EXPECT_EQ(rows.front().at("direction"), "out_of_place");
  EXPECT_EQ(rows.back().at("size"), "2016");
  EXPECT_EQ(rows.back().at("direction"), GetParam().runsInPlace ? "in_place" : "out_of_place");
}

TEST(Perf, CsvLeavesUnknownFieldsEmpty) {
  const ReportFile file("the report.csv");
  ASSERT_EQ(
      shell("\"" BENCH_DIRECTORY "/broadcast_perf\" -t 2 -b 8 -e 8 -n 1 -c 0 --csv " + file.quoted()).code,
      0);
  std::ifstream text = file.open();
  std::string names;
  std::string line;
  std::getline(text, names);
  std::getline(text, line);
  EXPECT_TRUE(line.ends_with(",,,,,")) << line;
}

TEST(Perf, ACsvThatCannotBeMadeIsNoSuccess) {
  const Outcome run = shell("\"" BENCH_DIRECTORY "/broadcast_perf\" -t 2 -b 8 -e 8 --csv /dev/null/a.csv");
  EXPECT_EQ(run.code, 255);
  EXPECT_TRUE(contains(run.errors, "cannot create /dev/null/a.csv: Not a directory")) << run.errors;
}

}  // namespace
}  // namespace topoccl::bench
