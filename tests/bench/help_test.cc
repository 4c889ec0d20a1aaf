// Every program of bench/ says what it is when asked.
#include <gtest/gtest.h>

#include "bench/shell.h"

namespace topoccl::bench {
namespace {

std::vector<std::string> programs() {
  std::istringstream names(BENCH_PROGRAMS);
  std::vector<std::string> all;
  for (std::string name; names >> name;) all.push_back(name);
  return all;
}

TEST(Help, IsGivenByEveryProgramOnStandardOutput) {
  EXPECT_GE(programs().size(), 13U);
  for (const std::string& program : programs())
    for (const char* option : {"--help", "-h"}) {
      const Outcome outcome = shell("\"" BENCH_DIRECTORY "/" + program + "\" " + option);
      EXPECT_EQ(outcome.code, 0) << program << ' ' << option;
      EXPECT_TRUE(contains(outcome.text, "usage: ")) << program << ": " << outcome.text;
      EXPECT_TRUE(contains(outcome.text, program)) << program << ": " << outcome.text;
      EXPECT_EQ(outcome.errors, "") << program;
    }
}

TEST(Help, IsGivenOnStandardErrorForWhatIsWrong) {
  for (const std::string& program : programs()) {
    const Outcome outcome = shell("\"" BENCH_DIRECTORY "/" + program + "\" wrong argument for all of them");
    EXPECT_TRUE(outcome.code == 2 || outcome.code == 255) << program << ": " << outcome.code;
    EXPECT_EQ(outcome.text, "") << program;
    EXPECT_TRUE(contains(outcome.errors, "usage: ") || contains(outcome.errors, "--help"))
        << program << ": " << outcome.errors;
  }
}

}  // namespace
}  // namespace topoccl::bench
