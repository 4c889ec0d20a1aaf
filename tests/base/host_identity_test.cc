#include "base/host_identity.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace topoccl {
namespace {

// What a fork's child computes.
template <class F>
uint64_t inChild(F compute) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const uint64_t value = compute();
    _exit(write(ends[1], &value, sizeof(value)) == sizeof(value) ? 0 : 1);
  }
  uint64_t value = 0;
  EXPECT_EQ(read(ends[0], &value, sizeof(value)), static_cast<ssize_t>(sizeof(value)));
  waitpid(child, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
  return value;
}

TEST(HostIdentity, IsTheSameInAnotherProcess) {
  EXPECT_EQ(hostIdentity(""), inChild([] { return hostIdentity(""); }));
}

TEST(HostIdentity, IsReplacedByTheGivenOne) {
  EXPECT_NE(hostIdentity("a"), hostIdentity(""));
  EXPECT_NE(hostIdentity("a"), hostIdentity("b"));
  EXPECT_EQ(hostIdentity("a"), hostIdentity("a"));
}

TEST(HostIdentity, ExistsWithoutProc) {
  EXPECT_EQ(hostIdentity("", "/nonexistent"), hostIdentity("", "/nonexistent"));
  EXPECT_NE(hostIdentity("", "/nonexistent"), hostIdentity(""));
}

TEST(HostIdentity, OutlivesTheMainThread) {
  const uint64_t before = hostIdentity("");
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    static std::thread other([before] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the main thread has most likely ended
      _exit(hostIdentity("") == before ? 0 : 1);
    });
    syscall(SYS_exit, 0);  // of this thread, without unwinding the test
  }
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(HostName, HasNoDotAndIsNotEmpty) {
  EXPECT_FALSE(hostName().empty());
  EXPECT_EQ(hostName().find('.'), std::string::npos);
}

TEST(ProcessToken, StaysWithinAProcessAndChangesInAChild) {
  EXPECT_EQ(processToken(), processToken());
  EXPECT_NE(processToken(), inChild([] { return processToken(); }));
}

}  // namespace
}  // namespace topoccl
