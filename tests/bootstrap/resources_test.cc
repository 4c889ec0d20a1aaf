// Communicators come and go; descriptors and threads must not pile up.
#include <dirent.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "ranks.h"

namespace topoccl {
namespace {

using namespace topoccl::testing;

int entries(const char* folder) {
  int count = 0;
  DIR* open = ::opendir(folder);
  while (open && ::readdir(open)) ++count;
  if (open) ::closedir(open);
  return count;
}

// Roots end shortly after their last rank has left: waits for that.
void expectBackTo(const char* folder, int expected) {
  int now = entries(folder);
  for (int i = 0; i < 2000 && now > expected; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    now = entries(folder);
  }
  EXPECT_LE(now, expected) << folder;
}

void expectFlat(int cycles, const std::function<void()>& cycle) {
  cycle();  // what the first use makes for good (randomness, sanitizers' threads) is no leak
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const int descriptors = entries("/proc/self/fd"), threads = entries("/proc/self/task");
  for (int i = 0; i < cycles; ++i) cycle();
  expectBackTo("/proc/self/fd", descriptors);
  expectBackTo("/proc/self/task", threads);
}

TEST(Resources, StayFlatOverCommunicatorsThatComeAndGo) {
  const Settings settings = settingsWithTimeout(20'000);
  expectFlat(500, [&] {
    const UniqueId id = getUniqueId(settings);
    const auto errors = onThreads(2, [&](int rank) {
      const auto mine = connectBootstrap(id, 2, rank, settings);
      mine->barrier();
      mine->leave();
    });
    EXPECT_EQ(errors[0] + errors[1], "");
  });
}

TEST(Resources, StayFlatOverAborts) {
  const Settings settings = settingsWithTimeout(20'000);
  expectFlat(100, [&] {
    const UniqueId id = getUniqueId(settings);
    onThreads(2, [&](int rank) {
      const auto mine = connectBootstrap(id, 2, rank, settings);
      mine->reportAbort("test");
    });
  });
}

TEST(Resources, StayFlatOverInitsThatFail) {
  const Settings settings = settingsWithTimeout(50);
  expectFlat(20, [&] {
    const UniqueId id = getUniqueId(settings);
    EXPECT_THROW(connectBootstrap(id, 2, 0, settings), Error);
  });
}

TEST(Resources, StayFlatOverLocalCommunicators) {
  expectFlat(100, [] {
    auto all = localBootstrap(3);
    onThreads(3, [&](int rank) { all[static_cast<size_t>(rank)]->barrier(); });
  });
}

}  // namespace
}  // namespace topoccl
