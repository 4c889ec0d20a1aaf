#include "common/board.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "common/failure.h"
#include "common/memory_map.h"

namespace topoccl::bench {
namespace {

// Runs body(board) on `drivers` threads with one board.
template <class Body>
void onDrivers(int drivers, Body&& body) {
  const MemoryMap map = MemoryMap::anonymous(Board::bytesNeeded(drivers));
  std::vector<std::thread> threads;
  for (int i = 0; i < drivers; i++) {
    threads.emplace_back([&map, &body, drivers, i] {
      Board board(map.data(), drivers, i);
      body(board);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Board, NobodyLeavesABarrierBeforeAllCame) {
  std::atomic<int> came{0};
  std::atomic<int> early{0};
  onDrivers(5, [&](Board& board) {
    for (int round = 1; round <= 200; round++) {
      came++;
      board.barrier();
      if (came < 5 * round) early++;
      board.barrier();
    }
  });
  EXPECT_EQ(early, 0);
  EXPECT_EQ(came, 1000);
}

TEST(Board, EveryoneGathersEverybodysValue) {
  onDrivers(4, [](Board& board) {
    for (int round = 0; round < 100; round++) {
      const std::vector<int> all = board.gather(10 * round + board.driver());
      for (int i = 0; i < 4; i++) EXPECT_EQ(all[static_cast<size_t>(i)], 10 * round + i);
    }
  });
}

TEST(Board, AFailureEndsTheOthersBarriers) {
  std::atomic<int> ended{0};
  onDrivers(3, [&](Board& board) {
    if (board.driver() == 1) {
      board.fail();
      return;
    }
    EXPECT_THROW(board.barrier(), Failure);
    EXPECT_TRUE(board.failed());
    ended++;
  });
  EXPECT_EQ(ended, 2);
}

TEST(Board, OneDriverNeverWaits) {
  onDrivers(1, [](Board& board) {
    board.barrier();
    EXPECT_EQ(board.gather(3), std::vector<int>{3});
  });
}

}  // namespace
}  // namespace topoccl::bench
