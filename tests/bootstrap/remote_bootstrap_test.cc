// Ranks as threads that meet over TCP.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <chrono>

#include "base/error.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/root.h"
#include "ranks.h"

namespace topoccl {
namespace {

using namespace topoccl::testing;

void useOnce(const UniqueId& id, int ranks, int rank, const Settings& settings, int rounds = 3) {
  const auto mine = connectBootstrap(id, ranks, rank, settings);
  for (int round = 0; round < rounds; ++round)
    if (!areAllBlobs(mine->allGather(blobOf(rank)), ranks)) throw std::runtime_error("wrong blobs");
  mine->leave();
}

class RemoteRanks : public ::testing::TestWithParam<int> {};

TEST_P(RemoteRanks, GatherWhatTheOthersGave) {
  const Settings settings = settingsWithTimeout(60'000);
  const UniqueId id = getUniqueId(settings);
  for (const std::string& error :
       onThreads(GetParam(), [&](int rank) { useOnce(id, GetParam(), rank, settings); }))
    EXPECT_EQ(error, "");
}

INSTANTIATE_TEST_SUITE_P(All, RemoteRanks, ::testing::Values(1, 2, 3, 5, 8, 13, 64, 256));

TEST(RemoteBootstrap, CarriesLargeBlobs) {
  const Settings settings = settingsWithTimeout(60'000);
  const UniqueId id = getUniqueId(settings);
  const auto errors = onThreads(3, [&](int rank) {
    const auto mine = connectBootstrap(id, 3, rank, settings);
    const auto blobs = mine->allGather(std::string(size_t{5} << 20, static_cast<char>('a' + rank)));
    for (size_t other = 0; other < 3; ++other)
      if (blobs[other] != std::string(size_t{5} << 20, static_cast<char>('a' + other)))
        throw std::runtime_error("wrong blob");
    mine->leave();
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TEST(RemoteBootstrap, WorksOnTheDefaultInterface) {
  Settings settings;
  const UniqueId id = getUniqueId(settings);
  for (const std::string& error : onThreads(2, [&](int rank) { useOnce(id, 2, rank, settings); }))
    EXPECT_EQ(error, "");
}

TEST(RemoteBootstrap, WithAWrongSecretSaysSoAndHarmsNobody) {
  const Settings settings = settingsWithTimeout(20'000);
  const UniqueId id = getUniqueId(settings);
  Rendezvous wrong = decodeUniqueId(id);
  wrong.secret[0] ^= 1;
  const auto stranger = onThreads(1, [&](int) { useOnce(encodeUniqueId(wrong), 2, 0, settings); });
  EXPECT_TRUE(contains(stranger[0], "does not hold this id's secret")) << stranger[0];
  const auto errors = onThreads(2, [&](int rank) { useOnce(id, 2, rank, settings); });
  EXPECT_EQ(errors[0] + errors[1], "");
}

TEST(RemoteBootstrap, TellsEverybodyOfADoubleRank) {
  const Settings settings = settingsWithTimeout(20'000);
  const UniqueId id = getUniqueId(settings);
  const int ranks[] = {0, 1, 1};
  for (const std::string& error : onThreads(3, [&](int i) { useOnce(id, 3, ranks[i], settings); }))
    EXPECT_TRUE(contains(error, "rank 1 came twice")) << error;
}

TEST(RemoteBootstrap, TellsEverybodyOfARankOutOfRange) {
  const Settings settings = settingsWithTimeout(20'000);
  const UniqueId id = getUniqueId(settings);
  const int ranks[] = {0, 1, 7};
  for (const std::string& error : onThreads(3, [&](int i) { useOnce(id, 3, ranks[i], settings); }))
    EXPECT_TRUE(contains(error, "rank 7") && contains(error, "out of range")) << error;
}

TEST(RemoteBootstrap, TellsEverybodyOfDifferentNumbersOfRanks) {
  const Settings settings = settingsWithTimeout(20'000);
  const UniqueId id = getUniqueId(settings);
  for (const std::string& error : onThreads(3, [&](int i) { useOnce(id, i == 1 ? 4 : 3, i, settings); }))
    EXPECT_TRUE(contains(error, "one of 4") && contains(error, "one of 3")) << error;
}

TEST(RemoteBootstrap, NamesMissingRanks) {
  const Settings settings = settingsWithTimeout(300);
  const UniqueId id = getUniqueId(settings);
  for (const std::string& error : onThreads(2, [&](int i) { useOnce(id, 5, 1 + 2 * i, settings); }))
    EXPECT_TRUE(contains(error, "ranks 0, 2 and 4 of 5 did not join")) << error;
}

TEST(RemoteBootstrap, SaysWhereNobodyAnswers) {
  Rendezvous nobody;
  nobody.address = SocketAddress::parse("127.0.0.1:1");
  const auto errors =
      onThreads(1, [&](int rank) { useOnce(encodeUniqueId(nobody), 2, rank, settingsWithTimeout(200)); });
  EXPECT_TRUE(contains(errors[0], "127.0.0.1:1") && contains(errors[0], "refused")) << errors[0];
}

TEST(RemoteBootstrap, AbortEndsTheWaitForMissingRanks) {
  const Settings settings = settingsWithTimeout(60'000);
  const UniqueId id = getUniqueId(settings);
  std::atomic<bool> abort{false};
  std::thread aborter([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    abort = true;
  });
  EXPECT_THROW(connectBootstrap(id, 2, 0, settings, &abort), AbortedError);
  aborter.join();
  // The root takes it for what it is: this rank is gone.
  const auto errors = onThreads(1, [&](int) { useOnce(id, 2, 1, settings); });
  EXPECT_TRUE(contains(errors[0], "rank 0")) << errors[0];
}

// Makes a communicator of `ranks` and hands it to `body`, which may do as it likes.
void withCommunicator(int ranks, const std::function<void(std::vector<std::unique_ptr<Bootstrap>>&)>& body) {
  const Settings settings = settingsWithTimeout(20'000);
  const UniqueId id = getUniqueId(settings);
  std::vector<std::unique_ptr<Bootstrap>> all(static_cast<size_t>(ranks));
  const auto errors = onThreads(
      ranks, [&](int rank) { all[static_cast<size_t>(rank)] = connectBootstrap(id, ranks, rank, settings); });
  for (const std::string& error : errors) ASSERT_EQ(error, "");
  body(all);
}

TEST(RemoteBootstrap, DestructionWithoutGoodbyeIsADeathAndWithOneIsNot) {
  withCommunicator(3, [](auto& all) {
    all[1]->leave();
    all[1].reset();
    EXPECT_FALSE(all[0]->failure());
    all[2].reset();
    const PeerFailure failure = awaitFailure(*all[0]);
    EXPECT_EQ(failure.rank, 2);
    EXPECT_TRUE(contains(failure.reason, "gone without a goodbye")) << failure.reason;
    EXPECT_THROW(all[0]->allGather(""), Error);
  });
}

TEST(RemoteBootstrap, DeathWakesThoseWhoWait) {
  withCommunicator(3, [](auto& all) {
    const auto errors = onThreads(3, [&](int rank) {
      if (rank == 2)
        all[2].reset();
      else
        all[static_cast<size_t>(rank)]->allGather("");
    });
    EXPECT_TRUE(contains(errors[0], "rank 2")) << errors[0];
    EXPECT_TRUE(contains(errors[1], "rank 2")) << errors[1];
  });
}

TEST(RemoteBootstrap, ReportedAbortReachesEverybody) {
  withCommunicator(3, [](auto& all) {
    all[1]->reportAbort("tired");
    for (size_t rank : {0u, 2u}) {
      const PeerFailure failure = awaitFailure(*all[rank]);
      EXPECT_EQ(failure.rank, 1);
      EXPECT_TRUE(contains(failure.reason, "aborted: tired")) << failure.reason;
    }
    for (auto& one : all) one->leave();
  });
}

TEST(RemoteBootstrap, HoldsAKeyThatOnlyItsRanksDerive) {
  withCommunicator(2, [](auto& all) {
    EXPECT_EQ(all[0]->deriveKey("a"), all[1]->deriveKey("a"));
    EXPECT_NE(all[0]->deriveKey("a"), all[0]->deriveKey("b"));
    for (auto& one : all) one->leave();
  });
}

// A port that was free a moment ago.
uint16_t freePort() {
  return localAddress(listenOn(SocketAddress::parse("127.0.0.1:0")).get()).port();
}

TEST(CommId, ServesOneCommunicatorAfterAnother) {
  Settings settings = settingsWithTimeout(20'000);
  settings.commId = concat("127.0.0.1:", freePort());
  const UniqueId id = getUniqueId(settings);
  const auto errors = onThreads(4, [&](int rank) {
    for (int round = 0; round < 5; ++round) useOnce(id, 4, rank, settings);
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TEST(CommId, LateRootIsWaitedFor) {
  Settings settings = settingsWithTimeout(20'000);
  settings.commId = concat("127.0.0.1:", freePort());
  const UniqueId id = getUniqueId(settings);
  const auto errors = onThreads(3, [&](int rank) {
    if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    useOnce(id, 3, rank, settings);
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TEST(RemoteBootstrap, SurvivesAStormOfSignals) {
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) {};
  ::sigaction(SIGALRM, &action, &before);
  const itimerval often{{0, 500}, {0, 500}};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  const Settings settings = settingsWithTimeout(20'000);
  for (int round = 0; round < 10; ++round) {
    const UniqueId id = getUniqueId(settings);
    for (const std::string& error : onThreads(4, [&](int rank) { useOnce(id, 4, rank, settings); }))
      EXPECT_EQ(error, "");
  }
  const itimerval never{};
  ::setitimer(ITIMER_REAL, &never, nullptr);
  ::sigaction(SIGALRM, &before, nullptr);
}

}  // namespace
}  // namespace topoccl
