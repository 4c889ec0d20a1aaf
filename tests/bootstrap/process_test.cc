// Ranks as processes: what threads can't show, above all death.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "base/error.h"
#include "processes.h"

namespace topoccl {
namespace {

using namespace topoccl::testing;

class ProcessRanks : public ::testing::TestWithParam<int> {};

TEST_P(ProcessRanks, GatherWhatTheOthersGave) {
  const int ranks = GetParam();
  const Settings settings = settingsWithTimeout(60'000);
  SharedValue<IdBox> box;
  Processes processes(ranks, [&](int rank) {
    const UniqueId id = rank == 0 ? box->make(settings) : box->take();
    const auto mine = connectBootstrap(id, ranks, rank, settings);
    for (int round = 0; round < 3; ++round)
      if (!areAllBlobs(mine->allGather(blobOf(rank)), ranks)) throw std::runtime_error("wrong blobs");
    mine->leave();
  });
  for (const std::string& error : processes.wait()) EXPECT_EQ(error, "");
}

INSTANTIATE_TEST_SUITE_P(All, ProcessRanks, ::testing::Values(1, 2, 3, 5, 8, 13, 64));

struct Stage {
  IdBox box;
  std::atomic<int> ready{0};
};

TEST(Death, OfARankIsToldToTheOthers) {
  const Settings settings = settingsWithTimeout(60'000);
  SharedValue<Stage> stage;
  Processes processes(4, [&](int rank) {
    const UniqueId id = rank == 0 ? stage->box.make(settings) : stage->box.take();
    const auto mine = connectBootstrap(id, 4, rank, settings);
    mine->barrier();
    ++stage->ready;
    const PeerFailure failure = awaitFailure(*mine);
    throw std::runtime_error(concat(failure.rank, " ", failure.reason));
  });
  while (stage->ready < 4) ::usleep(1000);
  ::kill(processes.pid(2), SIGKILL);
  const auto errors = processes.wait();
  EXPECT_EQ(errors[2], "killed");
  for (size_t rank : {0u, 1u, 3u}) EXPECT_TRUE(errors[rank].starts_with("2 rank 2 (host ")) << errors[rank];
}

TEST(Death, OfARankDuringInitIsToldToTheOthers) {
  const Settings settings = settingsWithTimeout(60'000);
  SharedValue<Stage> stage;
  Processes processes(3, [&](int rank) {
    const UniqueId id = rank == 0 ? stage->box.make(settings) : stage->box.take();
    if (rank == 0) ::usleep(200'000);
    ++stage->ready;
    // Rank 3 of 4 never comes.
    connectBootstrap(id, 4, rank, settings);
  });
  while (stage->ready < 3) ::usleep(1000);
  ::usleep(300'000);
  ::kill(processes.pid(1), SIGKILL);
  const auto errors = processes.wait();
  EXPECT_EQ(errors[1], "killed");
  for (size_t rank : {0u, 2u})
    EXPECT_TRUE(contains(errors[rank], "rank 1") && contains(errors[rank], "during init")) << errors[rank];
}

TEST(Death, OfTheRootNamesItsRank) {
  const Settings settings = settingsWithTimeout(60'000);
  SharedValue<Stage> stage;
  Processes processes(3, [&](int rank) {
    const UniqueId id = rank == 1 ? stage->box.make(settings) : stage->box.take();
    const auto mine = connectBootstrap(id, 3, rank, settings);
    ++stage->ready;
    if (rank == 0) mine->allGather("");  // waiting
    const PeerFailure failure = awaitFailure(*mine);
    throw std::runtime_error(concat(failure.rank, " ", failure.reason));
  });
  while (stage->ready < 3) ::usleep(1000);
  ::kill(processes.pid(1), SIGKILL);
  const auto errors = processes.wait();
  EXPECT_EQ(errors[1], "killed");
  for (size_t rank : {0u, 2u})
    EXPECT_TRUE(contains(errors[rank], "where rank 1 lives, is gone")) << errors[rank];
}

TEST(Goodbye, OfTheRootsRankLetsItsProcessEnd) {
  const Settings settings = settingsWithTimeout(60'000);
  SharedValue<Stage> stage;
  Processes processes(3, [&](int rank) {
    const UniqueId id = rank == 0 ? stage->box.make(settings) : stage->box.take();
    const auto mine = connectBootstrap(id, 3, rank, settings);
    mine->barrier();
    if (rank == 0) {
      mine->leave();
      return;
    }
    while (stage->ready == 0) ::usleep(1000);
    ::usleep(50'000);
    for (int i = 0; i < 3; ++i)
      if (const auto failure = mine->failure()) throw std::runtime_error(failure->reason);
    mine->leave();
  });
  siginfo_t ended;
  ::waitid(P_PID, static_cast<id_t>(processes.pid(0)), &ended, WEXITED | WNOWAIT);
  ++stage->ready;
  for (const std::string& error : processes.wait()) EXPECT_EQ(error, "");
}

TEST(Death, IsNotWhatStoppingIs) {
  const Settings settings = settingsWithTimeout(60'000);
  SharedValue<Stage> stage;
  Processes processes(2, [&](int rank) {
    const UniqueId id = rank == 0 ? stage->box.make(settings) : stage->box.take();
    const auto mine = connectBootstrap(id, 2, rank, settings);
    ++stage->ready;
    mine->barrier();
    mine->leave();
  });
  while (stage->ready < 1) ::usleep(1000);
  ::kill(processes.pid(1), SIGSTOP);
  ::usleep(300'000);
  ::kill(processes.pid(1), SIGCONT);
  for (const std::string& error : processes.wait()) EXPECT_EQ(error, "");
}

}  // namespace
}  // namespace topoccl
