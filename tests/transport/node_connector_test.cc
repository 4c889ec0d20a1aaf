// Ends of connections within a node: who sees whose ring, who rings whom, and what may go directly.
#include "transport/node_connector.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"

namespace topoccl::test {
namespace {

constexpr int kRanks = 3;

class NodeConnectorTest : public testing::Test {
 protected:
  NodeConnector connectorOf(int rank, const std::vector<bool>& sameProcess = {true, true, true},
                            Fetching fetching = Fetching::WhereQuicker) const {
    std::vector<RankPlace> places;
    for (int peer = 0; peer < kRanks; ++peer)
      places.push_back({peer, sameProcess[static_cast<size_t>(peer)]});
    return NodeConnector(memory_, rank, places, fetching);
  }
  Doorbell* bell(int rank) const { return &memory_->board().doorbell(rank); }

  std::shared_ptr<NodeMemory> memory_ = std::make_shared<NodeMemory>(NodeMemory::make(kRanks, false), kRanks);
  Connection broadcast_{0, {1, 2}, 0, 0};
  ConnectionPlan plan_{&broadcast_, 17, {4, 256, 2}, Protocol::Bulk};
  Connection one_{0, {1}, 0, 0};
  ConnectionPlan single_{&one_, 18, {4, 256, 1}, Protocol::Bulk};
};

TEST_F(NodeConnectorTest, ReadersWaitForTheProducersRing) {
  NodeConnector producer = connectorOf(0), reader = connectorOf(2);
  Endpoint from, to;
  EXPECT_FALSE(reader.connect(plan_, to));
  ASSERT_TRUE(producer.connect(plan_, from));
  ASSERT_TRUE(reader.connect(plan_, to));
  EXPECT_EQ(to.reader.reader(), 1U);
  EXPECT_EQ(to.reader.ring().published(), from.writer.ring().published());
  ASSERT_TRUE(from.writer.ready());
  from.writer.publish();
  EXPECT_TRUE(to.reader.ready());
}

TEST_F(NodeConnectorTest, EveryEndRingsTheOthers) {
  NodeConnector producer = connectorOf(0), reader = connectorOf(2);
  Endpoint from, to;
  ASSERT_TRUE(producer.connect(plan_, from));
  ASSERT_TRUE(reader.connect(plan_, to));
  ASSERT_EQ(from.bellCount, 2U);
  EXPECT_EQ(from.bells[0], bell(1));
  EXPECT_EQ(from.bells[1], bell(2));
  ASSERT_EQ(to.bellCount, 1U);
  EXPECT_EQ(to.bells[0], bell(0));
}

// A reader that found no ring may be asleep; nothing else wakes it until data comes.
TEST_F(NodeConnectorTest, ANewRingWakesItsReaders) {
  for (int rank = 0; rank < kRanks; ++rank) bell(rank)->sleeping = 1;
  NodeConnector producer = connectorOf(0);
  Endpoint from;
  ASSERT_TRUE(producer.connect(plan_, from));
  EXPECT_EQ(bell(0)->bell, 0U);
  EXPECT_EQ(bell(1)->bell, 1U);
  EXPECT_EQ(bell(2)->bell, 1U);
}

TEST_F(NodeConnectorTest, OnlyEndsThatAllShareAProcessAreDirect) {
  Endpoint from;
  ASSERT_TRUE(connectorOf(0).connect(plan_, from));
  EXPECT_TRUE(from.direct);
  plan_.key = 19;
  ASSERT_TRUE(connectorOf(0, {true, true, false}).connect(plan_, from));
  EXPECT_FALSE(from.direct) << "one reader is elsewhere";
  Endpoint to;
  ASSERT_TRUE(connectorOf(1, {false, true, true}).connect(plan_, to));
  EXPECT_FALSE(to.direct) << "the producer is elsewhere";
}

// Whoever can read the producer's memory, which here is this process, is ready for references; that it wants
// them is known later, or set.
TEST_F(NodeConnectorTest, AReaderInAnotherProcessReachesTheProducersMemory) {
  const std::vector<bool> apart = {false, false, false};
  Endpoint from, to, always;
  ASSERT_TRUE(connectorOf(0, apart).connect(single_, from));
  EXPECT_EQ(from.memory, nullptr) << "no reader";
  NodeConnector reader = connectorOf(1, apart), keen = connectorOf(1, apart, Fetching::Always);
  ASSERT_TRUE(reader.connect(single_, to));
  ASSERT_NE(to.memory, nullptr);
  const uint32_t there = 17;
  uint32_t here = 0;
  EXPECT_EQ(to.memory->read(&here, &there, sizeof(here)), 0);
  EXPECT_EQ(here, there);
  EXPECT_FALSE(from.writer.fetched());
  ASSERT_TRUE(keen.connect(single_, always));
  EXPECT_TRUE(from.writer.fetched());
  always.reader.fetch(false);
  EXPECT_FALSE(from.writer.fetched());
}

TEST_F(NodeConnectorTest, NobodyFetchesWhereItIsOffOrDirectOrForeignOrShared) {
  const std::vector<bool> apart = {false, false, false};
  Endpoint from, to;
  ASSERT_TRUE(connectorOf(0, apart).connect(single_, from));
  ASSERT_TRUE(connectorOf(1, apart, Fetching::Never).connect(single_, to));
  EXPECT_EQ(to.memory, nullptr);
  ASSERT_TRUE(connectorOf(1, {true, true, true}, Fetching::Always).connect(single_, to));
  EXPECT_EQ(to.memory, nullptr);
  from.writer.ring().description().producer.token ^= 1;  // another process has its number
  ASSERT_TRUE(connectorOf(1, apart, Fetching::Always).connect(single_, to));
  EXPECT_EQ(to.memory, nullptr);
  EXPECT_FALSE(from.writer.fetched());
  ASSERT_TRUE(connectorOf(0, apart).connect(plan_, from));
  ASSERT_TRUE(connectorOf(1, apart, Fetching::Always).connect(plan_, to));
  EXPECT_EQ(to.memory, nullptr) << "two readers";
}

TEST_F(NodeConnectorTest, ProducersOfOtherNodesAreAnError) {
  NodeConnector reader(memory_, 1, {{-1, false}, {0, true}, {1, true}});
  Endpoint to;
  try {
    reader.connect(plan_, to);
    FAIL() << "connected";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::InternalError);
    EXPECT_NE(std::string(error.what()).find("rank 0 is not on the node of rank 1"), std::string::npos);
  }
}

TEST_F(NodeConnectorTest, NamesItsTransports) {
  const NodeConnector connector = connectorOf(0, {true, true, false});
  EXPECT_STREQ(connector.transportTo(1), "in-process");
  EXPECT_STREQ(connector.transportTo(2), "shm");
}

}  // namespace
}  // namespace topoccl::test
