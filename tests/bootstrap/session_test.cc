#include "bootstrap/session.h"

#include <gtest/gtest.h>

#include "base/version.h"
#include "bootstrap/rank_list.h"
#include "ranks.h"

namespace topoccl {
namespace {

using std::chrono::milliseconds;
using testing::contains;

// A session whose sends are recorded; a rank's connection is its rank + 100 unless given.
struct Stage {
  struct Sent {
    Message kind;
    std::string payload;
  };
  std::map<int, std::vector<Sent>> sent;
  std::vector<int> order;  // connections, as they were sent to
  Session::Time now{std::chrono::hours(1)};
  Session session{
      {-1, 77, 1, "roothost"}, milliseconds(500), [this](int connection, Message kind, const Payload& p) {
        sent[connection].push_back({kind, p.bytes()});
        order.push_back(connection);
      }};

  void join(int rank, int ranks, int connection = -1, uint32_t version = kLibraryVersion,
            uint32_t patience = 1000, uint64_t process = 0) {
    give(connection < 0 ? rank + 100 : connection, Message::Join,
         encode(Join{version, ranks, rank, patience,
                     process != 0 ? process : static_cast<uint64_t>(int64_t{70} + rank), 1000, "host"}),
         static_cast<uint32_t>(rank));
  }
  void give(int connection, Message kind, const std::string& payload, uint32_t claimed = 0) {
    session.onFrame(connection, claimed, {static_cast<uint8_t>(kind), payload}, now);
  }
  void gather(int rank, const std::string& blob) {
    give(rank + 100, Message::Gather, encode(Contribution{1000, blob}));
  }
  void tick(int count) {
    now += milliseconds(count);
    session.onTick(now);
  }
  // The failure a connection was told last; "" for none.
  std::string told(int connection) {
    for (auto last = sent[connection].rbegin(); last != sent[connection].rend(); ++last)
      if (last->kind == Message::Failure) return decodeFailure(last->payload)->reason;
    return "";
  }
  bool welcomed(int connection) {
    return !sent[connection].empty() && sent[connection].front().kind == Message::Welcome;
  }
};

TEST(Session, WelcomesWhenAllHaveJoined) {
  Stage stage;
  stage.join(2, 3);
  stage.join(0, 3);
  EXPECT_TRUE(stage.sent.empty());
  stage.join(1, 3);
  for (int rank : {0, 1, 2}) EXPECT_TRUE(stage.welcomed(rank + 100));
  EXPECT_EQ(stage.session.nextTick(), Deadline::never());
}

TEST(Session, TellsWhichRankLivesWithTheRoot) {
  Stage stage;
  stage.join(7, 9);  // process 77 is the root's
  for (int rank = 0; rank < 9; ++rank)
    if (rank != 7) stage.join(rank, 9);
  EXPECT_EQ(decodeWelcome(stage.sent[100].front().payload)->rootRank, 7);
}

// Which of them has left when the root goes is not for it to say.
TEST(Session, NamesNoneOfSeveralRanksThatLiveWithTheRoot) {
  Stage stage;
  for (const int rank : {7, 6}) stage.join(rank, 9, -1, kLibraryVersion, 1000, 77);
  for (int rank = 0; rank < 9; ++rank)
    if (rank != 7 && rank != 6) stage.join(rank, 9);
  EXPECT_EQ(decodeWelcome(stage.sent[100].front().payload)->rootRank, kSeveralRanks);
}

// Its process may end as soon as it hears, and the root with it.
TEST(Session, TellsTheRankThatLivesWithTheRootLast) {
  Stage stage;
  for (const int rank : {7, 6, 8}) stage.join(rank, 12);
  stage.order.clear();
  stage.session.onClosed(106, "died");
  EXPECT_EQ(stage.order, (std::vector{108}));
  stage.tick(0);  // from now on it waits for those who have not come
  stage.join(5, 12);
  EXPECT_EQ(stage.order, (std::vector{108, 105}));
  stage.tick(499);
  EXPECT_EQ(stage.order, (std::vector{108, 105}));
  stage.tick(1);
  EXPECT_EQ(stage.order, (std::vector{108, 105, 107}));
}

TEST(Session, TellsTheRankThatLivesWithTheRootOnceAllOthersHaveCome) {
  Stage stage;
  for (const int rank : {7, 0, 1, 2, 3, 4, 5}) stage.join(rank, 9);
  stage.order.clear();
  stage.join(5, 9, 205);  // twice
  EXPECT_EQ(stage.told(107), "");
  stage.join(6, 9);
  EXPECT_EQ(stage.told(107), "");
  stage.join(8, 9);
  EXPECT_TRUE(contains(stage.told(107), "rank 5 came twice")) << stage.told(107);
  for (const int connection : {100, 105, 205, 106, 108}) EXPECT_EQ(stage.told(connection), stage.told(107));
}

TEST(Session, TellsNothingToWhoWentWhileHeldBack) {
  Stage stage;
  stage.join(7, 4, 107);
  stage.join(0, 4);
  stage.session.onClosed(100, "died");
  stage.join(7, 4, 207);  // late, and a member's double
  for (const int connection : {107, 207}) stage.session.onClosed(connection, "closed");
  stage.order.clear();
  stage.tick(0);
  stage.tick(1000);
  EXPECT_EQ(stage.order, std::vector<int>{});
}

// It is the late one.
TEST(Session, HoldsBackWhatItTellsALateRankThatLivesWithTheRoot) {
  Stage stage;
  stage.join(0, 4);
  stage.session.onClosed(100, "died");
  stage.tick(0);
  stage.join(7, 4, 107);  // process 77, and out of range
  EXPECT_EQ(stage.told(107), "");
  stage.tick(500);
  EXPECT_TRUE(contains(stage.told(107), "rank 0 ")) << stage.told(107);
}

TEST(Session, GathersBlobsByRank) {
  Stage stage;
  for (int rank : {0, 1, 2}) stage.join(rank, 3);
  for (int round = 0; round < 2; ++round) {
    for (int rank : {1, 0, 2}) stage.gather(rank, concat("blob", rank, round));
    const std::vector<std::string> expected = {concat("blob0", round), concat("blob1", round),
                                               concat("blob2", round)};
    for (int rank : {0, 1, 2}) EXPECT_EQ(decodeBlobs(stage.sent[rank + 100].back().payload, 3), expected);
  }
}

TEST(Session, TellsEverybodyOfADoubleRank) {
  Stage stage;
  stage.join(0, 3);
  stage.join(1, 3);
  stage.join(1, 3, 500);
  for (int connection : {100, 101, 500}) EXPECT_TRUE(contains(stage.told(connection), "rank 1 came twice"));
  stage.join(2, 3);
  EXPECT_TRUE(contains(stage.told(102), "rank 1 came twice"));
  for (int connection : {100, 101, 500, 102}) stage.session.onClosed(connection, "closed");
  EXPECT_TRUE(stage.session.finished());
}

TEST(Session, TellsEverybodyOfARankOutOfRange) {
  for (int rank : {3, -1, INT32_MAX, INT32_MIN}) {
    Stage stage;
    stage.join(0, 3);
    stage.join(rank, 3, 500);
    for (int connection : {100, 500})
      EXPECT_TRUE(contains(stage.told(connection),
                           concat("rank ", rank, " (host host, process 1000) is out of range")))
          << stage.told(connection);
  }
}

TEST(Session, TellsEverybodyOfDifferentNumbersOfRanks) {
  Stage stage;
  stage.join(0, 3);
  stage.join(1, 4);
  for (int connection : {100, 101}) {
    EXPECT_TRUE(contains(stage.told(connection), "rank 1"));
    EXPECT_TRUE(contains(stage.told(connection), "one of 4 ranks"));
    EXPECT_TRUE(contains(stage.told(connection), "one of 3"));
  }
}

TEST(Session, RefusesNumbersOfRanksThatMakeNoSense) {
  for (int ranks : {0, -5}) {
    Stage stage;
    stage.join(0, ranks);
    EXPECT_TRUE(contains(stage.told(100), "out of range"));
  }
}

TEST(Session, TellsEverybodyOfDifferentVersions) {
  Stage stage;
  stage.join(0, 2);
  stage.join(1, 2, -1, 20'305);
  for (int connection : {100, 101}) EXPECT_TRUE(contains(stage.told(connection), "version 2.3.5"));
}

TEST(Session, NamesMissingRanksAtTheShortestPatience) {
  Stage stage;
  stage.join(1, 5, -1, kLibraryVersion, 1000);
  stage.join(3, 5, -1, kLibraryVersion, 300);
  EXPECT_EQ(stage.session.nextTick(), Deadline::at(stage.now + milliseconds(300)));
  stage.tick(299);
  EXPECT_EQ(stage.told(101), "");
  stage.tick(1);
  for (int connection : {101, 103})
    EXPECT_EQ(stage.told(connection),
              "ranks 0, 2 and 4 of 5 did not join within 0.3 s (TOPOCCL_INIT_TIMEOUT)");
  stage.join(2, 5);
  EXPECT_EQ(stage.told(102), "ranks 0, 2 and 4 of 5 did not join within 0.3 s (TOPOCCL_INIT_TIMEOUT)");
}

TEST(Session, TellsOfStrangersWhereRanksAreMissing) {
  Stage stage;
  stage.join(0, 2);
  for (int i = 0; i < 3; ++i) stage.session.noteStranger();
  stage.tick(1000);
  EXPECT_TRUE(contains(stage.told(100), "3 connections that did not hold the id's secret"))
      << stage.told(100);
}

TEST(Session, LingersAfterAFailureForLateRanksThenEnds) {
  Stage stage;
  stage.join(0, 3);
  stage.tick(1000);
  stage.session.onClosed(100, "closed");
  stage.tick(499);
  EXPECT_FALSE(stage.session.finished());
  EXPECT_NE(stage.session.nextTick(), Deadline::never());
  stage.tick(500);
  EXPECT_TRUE(stage.session.finished());
}

TEST(Session, NamesRanksThatDoNotEnterAnAllGather) {
  Stage stage;
  for (int rank : {0, 1, 2}) stage.join(rank, 3);
  stage.gather(1, "x");
  stage.tick(1000);
  EXPECT_TRUE(contains(stage.told(101), "ranks 0 and 2 of 3 did not come within 1 s")) << stage.told(101);
  EXPECT_EQ(stage.told(100), stage.told(101));
}

TEST(Session, FloodsADeath) {
  Stage stage;
  for (int rank : {0, 1, 2}) stage.join(rank, 3);
  stage.session.onClosed(101, "reset");
  for (int connection : {100, 102})
    EXPECT_EQ(stage.told(connection), "rank 1 (host host, process 1000) is gone without a goodbye: reset");
  EXPECT_EQ(stage.told(101), "");
}

TEST(Session, FloodsADeathDuringInit) {
  Stage stage;
  stage.join(0, 3);
  stage.join(1, 3);
  stage.session.onClosed(101, "reset");
  EXPECT_TRUE(
      contains(stage.told(100), "rank 1 (host host, process 1000) is gone without a goodbye during init"));
}

TEST(Session, FloodsAnAbortOnce) {
  Stage stage;
  for (int rank : {0, 1, 2}) stage.join(rank, 3);
  stage.give(102, Message::Abort, "tired\n");
  stage.give(101, Message::Abort, "me too");
  EXPECT_EQ(stage.told(100), "rank 2 (host host, process 1000) aborted: tired?");
  EXPECT_EQ(stage.sent[100].size(), 2u);
}

TEST(Session, AGoodbyeIsNoDeath) {
  Stage stage;
  for (int rank : {0, 1}) stage.join(rank, 2);
  stage.give(100, Message::Leave, "");
  stage.session.onClosed(100, "closed");
  EXPECT_EQ(stage.told(101), "");
  EXPECT_FALSE(stage.session.finished());
  stage.give(101, Message::Leave, "");
  stage.session.onClosed(101, "closed");
  EXPECT_TRUE(stage.session.finished());
}

TEST(Session, SaysWhenTheRootsProcessMayEnd) {
  Stage stage;
  for (int rank = 0; rank < 9; ++rank) stage.join(rank, 9);
  stage.give(100, Message::Leave, "");
  EXPECT_EQ(stage.sent[100].back().kind, Message::Farewell);
  EXPECT_EQ(stage.sent[101].back().kind, Message::Welcome);
  stage.give(107, Message::Leave, "");  // process 77 is the root's
  EXPECT_EQ(stage.sent[101].back().kind, Message::RootMayGo);
  EXPECT_EQ(stage.sent[100].back().kind, Message::Farewell);
}

TEST(Session, AllGatherWithOneWhoLeftFails) {
  for (const bool leavesFirst : {true, false}) {
    Stage stage;
    for (int rank : {0, 1, 2}) stage.join(rank, 3);
    if (leavesFirst) stage.give(102, Message::Leave, "");
    stage.gather(0, "x");
    if (!leavesFirst) stage.give(102, Message::Leave, "");
    EXPECT_TRUE(contains(stage.told(100), "rank 2")) << stage.told(100);
    EXPECT_TRUE(contains(stage.told(100), "left")) << stage.told(100);
  }
}

TEST(Session, ReusedIdDoesNotHarmTheRunningCommunicator) {
  Stage stage;
  for (int rank : {0, 1}) stage.join(rank, 2);
  stage.join(0, 2, 500);
  EXPECT_TRUE(contains(stage.told(500), "the id was used before"));
  EXPECT_EQ(stage.told(100), "");
  EXPECT_FALSE(stage.session.failed());
}

TEST(Session, ARankThatProvedAnotherRankDoesNotJoin) {
  Stage stage;
  stage.give(100, Message::Join, encode(Join{kLibraryVersion, 2, 0, 1000, 1, 1, "h"}), 1);
  EXPECT_FALSE(stage.session.isMember(100));
}

TEST(Session, MembersThatBreakTheProtocolAreNamed) {
  const auto reasonOf = [](auto misbehave) {
    Stage stage;
    for (int rank : {0, 1}) stage.join(rank, 2);
    misbehave(stage);
    return stage.told(101);
  };
  EXPECT_TRUE(
      contains(reasonOf([](Stage& s) { s.gather(0, ""), s.gather(0, ""); }), "rank 0 broke the protocol"));
  EXPECT_TRUE(
      contains(reasonOf([](Stage& s) { s.give(100, Message::Gather, "x"); }), "rank 0 sent a malformed"));
  EXPECT_TRUE(contains(reasonOf([](Stage& s) { s.give(100, Message::Join, ""); }), "rank 0 sent an unknown"));
  EXPECT_TRUE(contains(reasonOf([](Stage& s) {
                         s.gather(0, std::string(kMaxGatherBytes / 2 + 1, 'x')),
                             s.gather(1, std::string(kMaxGatherBytes / 2, 'x'));
                       }),
                       "exceed 67108864 bytes"));
}

TEST(Session, EarlyAllGatherBeforeAllJoinedFails) {
  Stage stage;
  stage.join(0, 2);
  stage.gather(0, "x");
  EXPECT_TRUE(contains(stage.told(100), "broke the protocol"));
}

TEST(Session, AClaimOfManyRanksCostsNothing) {
  Stage stage;
  stage.join(5, INT32_MAX);
  stage.tick(1000);
  EXPECT_TRUE(contains(stage.told(105), " more of 2147483647 did not join"));
}

TEST(RankList, ReadsWell) {
  EXPECT_EQ(rankList({3}), "rank 3");
  EXPECT_EQ(rankList({1, 2}), "ranks 1 and 2");
  EXPECT_EQ(rankList({1, 2, 5}), "ranks 1, 2 and 5");
  std::vector<int> many(20);
  EXPECT_TRUE(rankList(many).ends_with(" and 4 more"));
}

}  // namespace
}  // namespace topoccl
