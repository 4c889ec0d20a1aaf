// Sleeping and waking: no bell is lost, bells end sleeps, and the caller's errno stays what it was.
#include "executor/waiter.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <functional>
#include <thread>
#include <vector>

#include "support/deny_call.h"

namespace topoccl::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr long kFutexWaitv = 449;

constexpr std::chrono::microseconds kTimeToFallAsleep{300};

// How a publisher wakes; the usual one is ring().
using Waking = std::function<void(Doorbell&)>;

// One of two threads that answer each other: it sleeps on its doorbells until its mailbox has the next value.
class Player {
 public:
  struct Count {
    uint64_t sleeps = 0;
    // What was due long before the end of a sleep of full length. (A sender that comes when such a sleep is
    // just over rings nobody, and rightly so: hence "long before".)
    uint64_t late = 0;
    uint64_t lost = 0;  // those of them for which the bell was not even rung
  };

  explicit Player(uint32_t doorbells) : bells_(doorbells) {
    for (Doorbell& bell : bells_) pointers_.push_back(&bell);
  }

  void reset(WaitPolicy policy) {
    waiter_.reset(policy, pointers_.data(), static_cast<uint32_t>(pointers_.size()));
  }

  // Another thread: puts `value` into the mailbox and wakes.
  void send(uint64_t value, const Waking& waking) {
    // Every other time the receiver has said that it sleeps: of these, half the times it is on its way to
    // sleep, or looks once more and never does; the other half it has had the time to fall asleep.
    while (value % 2 == 0 && loadRelaxed(&bells_[0].sleeping) == 0) std::this_thread::yield();
    if (value % 4 == 0) std::this_thread::sleep_for(kTimeToFallAsleep);
    storeRelease(&mailbox_, value);
    fullFence();
    // Any of them, but often the last: the one that a limit on their number would forget.
    waking(bells_[(value % 8 == 0 ? value / 8 : bells_.size() - 1) % bells_.size()]);
    rungAt_ = Clock::now();
    storeRelease(&rung_, value);
  }

  void receive(uint64_t value) {
    for (;;) {
      // Before the look: whoever publishes after it sees this sleeper and adds to a bell.
      const uint64_t before = bellSum();
      if (loadAcquire(&mailbox_) >= value) break;
      const Clock::time_point begun = Clock::now();
      if (waiter_.idle(nullptr)) judge(value, before, begun);
    }
    waiter_.moved();
    while (loadAcquire(&rung_) < value) std::this_thread::yield();
  }

  const Count& count() const { return count_; }
  const std::vector<Doorbell>& bells() const { return bells_; }

 private:
  uint64_t bellSum() const {
    uint64_t sum = 0;
    for (const Doorbell& bell : bells_) sum += loadAcquire(&bell.bell);
    return sum;
  }

  void judge(uint64_t value, uint64_t before, Clock::time_point begun) {
    const Clock::time_point end = Clock::now();
    ++count_.sleeps;
    if (loadAcquire(&rung_) < value) return;
    if (end - begun < kLongestSleep || end - rungAt_ < kLongestSleep / 2) return;
    ++count_.late;
    if (bellSum() == before) ++count_.lost;
  }

  std::vector<Doorbell> bells_;
  std::vector<Doorbell*> pointers_;
  Waiter waiter_;
  uint64_t mailbox_ = 0;
  uint64_t rung_ = 0;
  Clock::time_point rungAt_;  // guarded by rung_
  Count count_;
};

// Plays that many rounds; `prepare` is called first by both threads. Returns the two players' counts.
std::vector<Player::Count> play(
    uint64_t rounds, uint32_t doorbells, const Waking& waking, const std::function<void()>& prepare = [] {}) {
  Player players[] = {Player(doorbells), Player(doorbells)};
  std::vector<std::thread> threads;
  for (int me = 0; me < 2; ++me)
    threads.emplace_back([&, me] {
      prepare();
      players[me].reset({0, 0});
      for (uint64_t round = 1; round <= rounds; ++round) {
        if (me == 0) players[1].send(round, waking);
        players[me].receive(round);
        if (me == 1) players[0].send(round, waking);
      }
    });
  for (std::thread& thread : threads) thread.join();
  return {players[0].count(), players[1].count()};
}

void wakeUp(Doorbell& bell) {
  ring(bell);
}

void expectSound(const std::vector<Player::Count>& counts, uint64_t rounds) {
  for (const Player::Count& count : counts) {
    EXPECT_GE(count.sleeps, rounds / 8) << "the test did not sleep";
    EXPECT_EQ(count.lost, 0U);
    // A busy machine may wake a thread that late now and then, but not as a rule.
    EXPECT_LT(count.late * 4, count.sleeps);
  }
}

TEST(Waiter, LosesNoBell) {
  constexpr uint64_t kRounds = 3000;
  expectSound(play(kRounds, 1, wakeUp), kRounds);
}

TEST(Waiter, LosesNoBellOfSeveral) {
  constexpr uint64_t kRounds = 2000;
  expectSound(play(kRounds, 3, wakeUp), kRounds);
}

// More doorbells than the system waits for at once.
TEST(Waiter, LosesNoBellOfVeryMany) {
  constexpr uint64_t kRounds = 400;
  expectSound(play(kRounds, 130, wakeUp), kRounds);
}

TEST(Waiter, LosesNoBellWhereTheSystemCannotWaitForSeveral) {
  constexpr uint64_t kRounds = 500;
  uint32_t denied = 0;
  const auto prepare = [&] {
    if (denyCall(kFutexWaitv)) fetchAdd(&denied, 1U);
  };
  const auto counts = play(kRounds, 3, wakeUp, prepare);
  if (denied != 2) GTEST_SKIP() << "this system does not let a thread give up a system call";
  expectSound(counts, kRounds);
}

// The counters of this test are worth something: a bell that nobody is woken by is late ...
TEST(WaiterCheck, SeesABellThatWakesNobody) {
  const auto counts = play(16, 1, [](Doorbell& bell) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    fetchAdd(&bell.bell, 1U);
  });
  EXPECT_GT(counts[0].late + counts[1].late, 0U);
}

// ... and one that was never rung is lost.
TEST(WaiterCheck, SeesABellThatWasNotRung) {
  const auto counts = play(16, 1, [](Doorbell&) {});
  EXPECT_GT(counts[0].lost + counts[1].lost, 0U);
}

TEST(Waiter, IsNotRungWhileItDoesNotSleep) {
  Doorbell bell{};
  Doorbell* bells[] = {&bell};
  Waiter waiter;
  waiter.reset({0, 0}, bells, 1);
  ring(bell);
  EXPECT_EQ(bell.bell, 0U);
  EXPECT_FALSE(waiter.idle(nullptr));  // announces itself
  EXPECT_EQ(bell.sleeping, 1U);
  waiter.moved();
  EXPECT_EQ(bell.sleeping, 0U);
  EXPECT_FALSE(waiter.idle(nullptr));
  EXPECT_EQ(bell.sleeping, 1U);
  ring(bell);
  EXPECT_EQ(bell.bell, 1U);
  waiter.finish();
  EXPECT_EQ(bell.sleeping, 0U);
  ring(bell);
  EXPECT_EQ(bell.bell, 1U);
}

// Another waiter may sleep on what this one has forgotten: it must not say that nobody does.
TEST(Waiter, LeavesAForgottenBellAlone) {
  Doorbell kept{}, forgotten{};
  Doorbell* bells[] = {&forgotten, &kept};
  Waiter waiter;
  waiter.reset({0, 0}, bells, 2);
  EXPECT_FALSE(waiter.idle(nullptr));  // it says that it will sleep
  EXPECT_EQ(loadRelaxed(&forgotten.sleeping), 1U);
  waiter.forget(&forgotten);
  EXPECT_EQ(loadRelaxed(&forgotten.sleeping), 0U);
  storeRelaxed(&forgotten.sleeping, 1U);  // the other
  EXPECT_FALSE(waiter.idle(nullptr));
  EXPECT_EQ(loadRelaxed(&kept.sleeping), 1U);
  waiter.moved();
  waiter.finish();
  EXPECT_EQ(loadRelaxed(&kept.sleeping), 0U);
  EXPECT_EQ(loadRelaxed(&forgotten.sleeping), 1U);
}

TEST(Waiter, SleepsAtOnceAgainWhenNothingMoved) {
  Doorbell bell{};
  Doorbell* bells[] = {&bell};
  Waiter waiter;
  waiter.reset({2, 2}, bells, 1);
  for (int look = 0; look < 4; ++look) {
    EXPECT_FALSE(waiter.idle(nullptr));
    EXPECT_EQ(bell.sleeping, 0U) << look;
  }
  EXPECT_FALSE(waiter.idle(nullptr));
  EXPECT_EQ(bell.sleeping, 1U);
  ring(bell);
  EXPECT_TRUE(waiter.idle(nullptr));  // the bell rang between look and sleep: back at once
  EXPECT_EQ(bell.sleeping, 0U);
  EXPECT_FALSE(waiter.idle(nullptr));
  EXPECT_EQ(bell.sleeping, 1U);
  waiter.finish();
}

TEST(Waiter, LeavesErrnoAlone) {
  for (const uint32_t doorbells : {0U, 1U, 2U, 130U}) {
    std::vector<Doorbell> lines(doorbells);
    std::vector<Doorbell*> bells;
    for (Doorbell& line : lines) bells.push_back(&line);
    Waiter waiter;
    waiter.reset({1, 2}, bells.data(), doorbells);
    int sleeps = 0;
    for (int look = 0; look < 20 && sleeps < 2; ++look) {
      errno = ERANGE;
      if (waiter.idle(nullptr)) ++sleeps;
      EXPECT_EQ(errno, ERANGE) << doorbells << " doorbells, look " << look;
    }
    EXPECT_EQ(sleeps, 2);
    waiter.finish();
    for (Doorbell& line : lines) {
      errno = ERANGE;
      wake(line);
      EXPECT_EQ(errno, ERANGE);
    }
  }
}

// However long it may spin, aborts and deadlines are looked at; the limit itself does not overflow.
TEST(Waiter, GoesToItsChecksWhileItSpins) {
  Doorbell bell{};
  Doorbell* bells[] = {&bell};
  for (const uint32_t spins : {1U << 20, UINT32_MAX - 1, UINT32_MAX}) {
    Waiter waiter;
    waiter.reset({spins, 8}, bells, 1);
    int checks = 0;
    for (int look = 0; look < 100'000; ++look) {
      if (waiter.idle(nullptr)) ++checks;
      ASSERT_EQ(bell.sleeping, 0U) << "limit " << spins << " look " << look;
    }
    EXPECT_GT(checks, 0) << spins;
  }
}

class SharedCore : public testing::Test {
 protected:
  // Runs `function` on a thread that stays on one core.
  static void onOneCore(const std::function<void(int core)>& function) {
    std::thread([&] {
      const int core = ::sched_getcpu();
      cpu_set_t only;
      CPU_ZERO(&only);
      CPU_SET(static_cast<size_t>(core), &only);
      if (::sched_setaffinity(0, sizeof(only), &only) == 0) function(core);
    }).join();
  }

  // Looks until the waiter announces its sleep.
  static int looksBeforeSleep(int32_t blockersCore, int limit) {
    Doorbell mine{}, blocker{};
    blocker.core = blockersCore;
    Doorbell* bells[] = {&mine};
    Waiter waiter;
    waiter.reset({1000, 4}, bells, 1);
    int looks = 0;
    while (looks < limit && mine.sleeping == 0) {
      waiter.idle(waiter.wantsBlocker() ? &blocker : nullptr);
      ++looks;
    }
    waiter.finish();
    return looks;
  }
};

TEST_F(SharedCore, IsNotSpunOn) {
  onOneCore([](int core) {
    EXPECT_LE(looksBeforeSleep(core + 1, 2000), 6);
    EXPECT_EQ(looksBeforeSleep(core + 2, 2000), 1005);
    EXPECT_EQ(looksBeforeSleep(0, 2000), 1005) << "an unknown core is no shared one";
  });
}

TEST_F(SharedCore, IsAnnouncedByWhoeverWaits) {
  onOneCore([](int core) {
    Doorbell lines[2]{};
    Doorbell* bells[] = {&lines[0], &lines[1]};
    Waiter waiter;
    waiter.reset({1000, 4}, bells, 2);
    waiter.idle(nullptr);
    EXPECT_EQ(lines[0].core, core + 1);
    EXPECT_EQ(lines[1].core, core + 1);
  });
}

}  // namespace
}  // namespace topoccl::test
