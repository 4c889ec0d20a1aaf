#include "common/options.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/failure.h"
#include "nccl.h"

namespace topoccl::bench {
namespace {

Options parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "bench");
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  return parseOptions(static_cast<int>(arguments.size()), pointers.data(), false);
}

int codeOf(const std::vector<std::string>& arguments) {
  try {
    parse(arguments);
  } catch (const Failure& failure) {
    return static_cast<int>(failure.code());
  }
  return 0;
}

TEST(Options, DefaultsAreNcclTests) {
  const Options o = parse({});
  EXPECT_EQ(o.minBytes, 32U << 20);
  EXPECT_EQ(o.maxBytes, 32U << 20);
  EXPECT_EQ(o.stepBytes, 1U << 20);
  EXPECT_EQ(o.iterations, 20);
  EXPECT_EQ(o.warmups, 1);
  EXPECT_EQ(o.checks, 1);
  EXPECT_EQ(o.type, ncclFloat);
  EXPECT_EQ(o.op, ncclSum);
  EXPECT_EQ(o.averaging, Averaging::Average);
  EXPECT_EQ(o.processes, 0);
}

TEST(Options, ValuesMayBeAttachedOrAbbreviated) {
  const Options o = parse(
      {"-b8", "-e", "128M", "-f2", "--iters=5", "--warmup", "0", "-d", "bfloat16", "-o", "all", "-r-1"});
  EXPECT_EQ(o.minBytes, 8U);
  EXPECT_EQ(o.maxBytes, 128U << 20);
  EXPECT_EQ(o.stepFactor, 2U);
  EXPECT_EQ(o.iterations, 5);
  EXPECT_EQ(o.warmups, 0);
  EXPECT_EQ(o.type, ncclBfloat16);
  EXPECT_EQ(o.op, kAll);
  EXPECT_EQ(o.root, kAll);
}

TEST(Options, ThreadsOrDevicesMeanOneProcessUnlessAskedOtherwise) {
  EXPECT_EQ(parse({"-t", "4"}).processes, 1);
  EXPECT_EQ(parse({"-g", "2"}).processes, 1);
  EXPECT_EQ(parse({"-t", "4", "--ranks", "3"}).processes, 3);
  EXPECT_NE(usage("bench").find("default: one per device, 1 when -t or -g is given"), std::string::npos);
  EXPECT_EQ(parse({"--nthreads", "4"}).processes, 1);
}

TEST(Options, EveryLetterOfNcclTestsIsAccepted) {
  for (const char* letter : {"t", "g", "i", "f", "n", "m", "w", "N", "p", "I", "K", "c", "r",
                             "z", "y", "T", "G", "C", "a", "R", "x", "V", "S", "M", "u"}) {
    EXPECT_EQ(codeOf({std::string("-") + letter, "1"}), 0) << letter;
  }
  EXPECT_EQ(codeOf({"-D", "0"}), 0);
  EXPECT_EQ(codeOf({"-J", "a.json"}), 0);
  EXPECT_TRUE(parse({"-h"}).help);
}

TEST(Options, MistakesEndWithNcclTestsCode) {
  for (const std::vector<std::string>& bad :
       std::vector<std::vector<std::string>>{{"-b", "9", "-e", "8"},
                                             {"-b", "x"},
                                             {"-d", "floaty"},
                                             {"-o", "plus"},
                                             {"-n", "0"},
                                             {"-n", "3x"},
                                             {"-Q"},
                                             {"word"},
                                             {"-J", "a.csv"},
                                             {"--ranks", "0"},
                                             {"-a", "4"},
                                             {"--device", "tpu"},
                                             {"-b", "1", "-e", "2", "-i", "0"}}) {
    EXPECT_EQ(codeOf(bad), 255) << bad.front();
  }
  EXPECT_EQ(codeOf({"--device", "cuda"}), static_cast<int>(ExitCode::NotImplemented));
  EXPECT_EQ(codeOf({"-D", "1"}), static_cast<int>(ExitCode::NotImplemented));
}

TEST(Options, HelpHasEverythingThatIsTaken) {
  const std::string text = usage("bench");
  for (const char letter : std::string("tgifnmwNpIKcrzyTGCaRxVSMuDbedoJh"))
    EXPECT_NE(text.find(std::string("-") + letter), std::string::npos) << letter;
  for (const char* word : {"Exit codes: 0 ", " 1 ", " 3 ", " 4 ", " 5 ", " 6 ", " 7 ", " 255 ",
                           "NCCL_TESTS_MIN_BW", "TOPOCCL_BENCH_INJECT=RANK:ELEMENT:BIT"})
    EXPECT_NE(text.find(word), std::string::npos) << word;
}

TEST(Options, HelpFitsAScreen) {
  const std::string text = usage("bench");
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 40);
  size_t longest = 0;
  for (size_t start = 0; start < text.size();) {
    const size_t end = text.find('\n', start);
    longest = std::max(longest, end - start);
    start = end + 1;
  }
  EXPECT_LE(longest, 100U);
}

}  // namespace
}  // namespace topoccl::bench
