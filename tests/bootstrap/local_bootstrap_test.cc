#include <gtest/gtest.h>

#include "base/error.h"
#include "bootstrap/bootstrap.h"
#include "ranks.h"

namespace topoccl {
namespace {

using testing::contains;
using namespace topoccl::testing;

class LocalRanks : public ::testing::TestWithParam<int> {};

TEST_P(LocalRanks, GatherWhatTheOthersGave) {
  const int ranks = GetParam();
  auto all = localBootstrap(ranks);
  std::vector<Bytes32> keys(static_cast<size_t>(ranks));
  const auto errors = onThreads(ranks, [&](int rank) {
    Bootstrap& mine = *all[static_cast<size_t>(rank)];
    for (int round = 0; round < 20; ++round)
      if (!areAllBlobs(mine.allGather(blobOf(rank)), ranks)) throw std::runtime_error("wrong blobs");
    mine.barrier();
    keys[static_cast<size_t>(rank)] = mine.deriveKey("x");
    mine.leave();
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  for (const Bytes32& key : keys) EXPECT_EQ(key, keys[0]);
}

INSTANTIATE_TEST_SUITE_P(All, LocalRanks, ::testing::Values(1, 2, 3, 5, 8, 13, 64));

TEST(LocalBootstrap, NamesWhoDoesNotCome) {
  auto all = localBootstrap(3, settingsWithTimeout(50));
  const auto errors = onThreads(2, [&](int rank) { all[static_cast<size_t>(rank)]->allGather(""); });
  for (const std::string& error : errors)
    EXPECT_TRUE(contains(error, "rank 2 of 3 did not come within 0.05 s")) << error;
}

TEST(LocalBootstrap, AbortWakesItsOwnRankAndTellsTheOthers) {
  std::atomic<bool> abort{false};
  auto all = localBootstrap(2, {}, {&abort, nullptr});
  std::thread waiting([&] { EXPECT_THROW(all[0]->allGather(""), AbortedError); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  abort = true;
  waiting.join();
  EXPECT_EQ(awaitFailure(*all[1]).rank, 0);
  EXPECT_THROW(all[1]->allGather(""), Error);
}

TEST(LocalBootstrap, DestructionWithoutGoodbyeIsADeathAndWithOneIsNot) {
  auto all = localBootstrap(3);
  all[1]->leave();
  all[1].reset();
  EXPECT_FALSE(all[0]->failure());
  all[2].reset();
  EXPECT_EQ(all[0]->failure()->rank, 2);
}

TEST(LocalBootstrap, AllGatherWithOneWhoLeftFails) {
  auto all = localBootstrap(2);
  all[1]->leave();
  EXPECT_THROW(all[0]->allGather(""), Error);
}

TEST(LocalBootstrap, ReportedAbortNamesItsRank) {
  auto all = localBootstrap(2);
  all[1]->reportAbort("tired");
  EXPECT_EQ(all[0]->failure()->reason, "rank 1 aborted: tired");
}

}  // namespace
}  // namespace topoccl
