// overlap_perf as people run it.
#include <gtest/gtest.h>

#include "bench/shell.h"

namespace topoccl::bench {
namespace {

Outcome overlap(const std::string& arguments) {
  return shell("\"" OVERLAP_PERF "\" " + arguments);
}

TEST(OverlapPerf, TimesEveryKindOfComputation) {
  const Outcome outcome = overlap("4K 3");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_TRUE(contains(outcome.text, "3 ranks, float32 sum of 4096 bytes")) << outcome.text;
  for (const char* row : {" elsewhere ", " here ", " uneven "})
    EXPECT_TRUE(contains(outcome.text, row)) << outcome.text;
}

TEST(OverlapPerf, RefusesWhatIsNoSizeOrNoNumberOfRanks) {
  for (const char* arguments : {"x", "2", "1M 0", "1M 5000", "1M x", "1M 2 3"}) {
    const Outcome outcome = overlap(arguments);
    EXPECT_EQ(outcome.code, 255) << arguments;
    EXPECT_TRUE(contains(outcome.errors, "usage: overlap_perf")) << outcome.errors;
  }
}

}  // namespace
}  // namespace topoccl::bench
