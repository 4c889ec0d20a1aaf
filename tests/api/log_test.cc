// What calls write to the log. It is fixed at a process's first use, so each test runs tests in a process of
// its own, with variables.
#include <gtest/gtest.h>
#include <limits.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "nccl.h"

namespace {

std::string readAll(std::FILE* file) {
  std::string text;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, file)) > 0;) text.append(buffer, n);
  return text;
}

// stderr of this program's disabled test Log.Inner with these variables.
std::string logOf(const std::string& variables) {
  char self[PATH_MAX] = {};
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return "no path";
  const std::string filter = " --gtest_also_run_disabled_tests --gtest_filter=Log.DISABLED_Inner";
  std::FILE* pipe = popen(
      ("env -u NCCL_DEBUG " + variables + " \"" + self + "\"" + filter + " 2>&1 >/dev/null").c_str(), "r");
  const std::string text = readAll(pipe);
  pclose(pipe);
  return text;
}

int countOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) count++;
  return count;
}

// Two communicators, one after the other, and three calls that fail.
TEST(Log, DISABLED_Inner) {
  for (int i = 0; i < 2; i++) {
    ncclComm_t comms[2];
    ncclCommInitAll(comms, 2, nullptr);
    for (ncclComm_t comm : comms) ncclCommDestroy(comm);
  }
  int count = 0;
  ncclGetVersion(nullptr);
  ncclCommCount(nullptr, &count);
  ncclGroupEnd();
}

const std::string kVersion = "NCCL version 2.32.3+topoccl";

TEST(Log, IsSilentUnlessAskedFor) {
  EXPECT_EQ(logOf(""), "");
}

TEST(Log, VersionIsOneLine) {
  const std::string text = logOf("NCCL_DEBUG=VERSION");
  EXPECT_EQ(text.find(kVersion), 0U) << text;
  EXPECT_EQ(countOf(text, "\n"), 1) << text;
}

TEST(Log, EveryFailedCallWarnsWithItsNameAndReason) {
  const std::string text = logOf("NCCL_DEBUG=WARN NCCL_ALGO=ring");
  EXPECT_EQ(countOf(text, kVersion), 1) << text;
  EXPECT_EQ(countOf(text, "NCCL WARN"), 3) << text;
  EXPECT_EQ(countOf(text, "(ncclGetVersion) NCCL WARN version is NULL"), 1) << text;
  EXPECT_EQ(countOf(text, "(ncclCommCount) NCCL WARN comm is NULL\n"), 1) << text;
  EXPECT_EQ(countOf(text, "(ncclGroupEnd) NCCL WARN "), 1) << text;
  EXPECT_EQ(countOf(text, "set by environment"), 0) << text;
}

TEST(Log, InfoSaysOnceWhatIsSet) {
  const std::string text = logOf("NCCL_DEBUG=INFO NCCL_ALGO=ring TOPOCCL_SECRET=hush");
  EXPECT_EQ(countOf(text, kVersion), 1) << text;
  EXPECT_EQ(countOf(text, "NCCL INFO NCCL_ALGO set by environment to ring.\n"), 1) << text;
  EXPECT_EQ(countOf(text, "hush"), 0) << text;
}

}  // namespace
