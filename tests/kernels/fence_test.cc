// Store buffering: each of two threads stores to its own word, fences, and reads the other's. At least one of
// them must see the other's store.
#include "kernels/sync.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <functional>
#include <thread>
#include <vector>

namespace topoccl {
namespace {

// Spins, then lets others have the core: the machine may be busy.
template <class Condition>
void spinUntil(const Condition& condition) {
  for (uint32_t looks = 0; !condition(); ++looks)
    if (looks % 1024 == 1023)
      std::this_thread::yield();
    else
      relaxCore();
}

struct alignas(64) Word {
  uint32_t value = 0;
};

// Rounds in which neither saw the other, of `rounds`. The two fences are what is tried.
uint64_t missed(uint64_t rounds, const std::function<void()>& fence0, const std::function<void()>& fence1) {
  Word mine[2];
  Word seen[2];
  Word meetings[2];
  uint64_t count = 0;
  const auto side = [&](int me, const std::function<void()>& fence) {
    uint32_t met = 0;
    const auto meet = [&] {
      storeRelease(&meetings[me].value, ++met);
      spinUntil([&] { return loadAcquire(&meetings[1 - me].value) >= met; });
    };
    for (uint32_t round = 1; round <= rounds; ++round) {
      meet();
      storeRelaxed(&mine[me].value, round);
      fence();
      storeRelaxed(&seen[me].value, loadRelaxed(&mine[1 - me].value));
      meet();
      if (me == 0 && loadRelaxed(&seen[0].value) < round && loadRelaxed(&seen[1].value) < round) ++count;
    }
  };
  std::thread other([&] { side(1, fence1); });
  side(0, fence0);
  other.join();
  return count;
}

constexpr uint64_t kRounds = 3000;

TEST(Fence, OnBothSidesLetsNeitherMissTheOther) {
  EXPECT_EQ(missed(kRounds, fullFence, fullFence), 0U);
}

// Without any, processors that buffer stores do miss them: what the test above would see.
TEST(Fence, IsNeeded) {
#if defined(__x86_64__) && !defined(TOPOCCL_THREAD_SANITIZER)
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "needs two cores";
  const auto none = [] { __asm__ __volatile__("" ::: "memory"); };
  uint64_t count = 0;
  for (int attempt = 0; attempt < 20 && count == 0; ++attempt) count = missed(kRounds, none, none);
  if (count == 0) GTEST_SKIP() << "this machine, as busy as it is, does not show it";
  SUCCEED();
#else
  GTEST_SKIP() << "known of x86 only";
#endif
}

}  // namespace
}  // namespace topoccl
