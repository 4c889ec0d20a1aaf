#include "communicator/open_schedule.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <tuple>

#include "algorithms/catalog.h"
#include "base/error.h"
#include "communicator/connections.h"
#include "schedule/builder.h"
#include "transport/node_memory.h"

namespace topoccl {
namespace {

SlotPlan plan(const AlgorithmRow& row, const Schedule& schedule, const SlotWishes& wishes = {}) {
  return planSlots(schedule, row.sendConnections(schedule.ranks), wishes);
}

// The rings that a rank makes for a schedule: what Connections shares counts once.
using Rings = std::map<std::tuple<Protocol, std::vector<int>, int, int, uint32_t, uint32_t>, uint64_t>;

void addRings(Rings& rings, const Schedule& schedule, SlotPlan slots, Protocol protocol) {
  for (const Connection& c : schedule.connections)
    if (c.from == schedule.rank)
      rings[{protocol, c.readers, c.channel, c.tag, slots.slots, slots.slotBytes}] =
          RingView::bytes({slots.slots, slots.slotBytes, static_cast<uint32_t>(c.readers.size())});
}

// "At most 32 MiB of rings per rank": everything that one can call, with every algorithm and both protocols.
TEST(SlotPlan, KeepsARanksRingsWithinItsRegion) {
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 32, 33, 64, 100, 128})
    for (const int rank : {0, ranks / 2, ranks - 1}) {
      Rings rings;
      for (const AlgorithmRow& row : algorithmRows())
        for (const int root : {0, ranks / 3, ranks - 1})
          for (const Protocol protocol : {Protocol::Packet, Protocol::Bulk}) {
            const Schedule schedule = row.emit(flatLayout(ranks), rank, root);
            addRings(rings, schedule, plan(row, schedule), protocol);
          }
      for (int peer = 0; peer < ranks; ++peer) {
        ScheduleBuilder builder(ranks, rank, 1);
        builder.step({kIn}, {builder.send(peer, 0, kPeerTag)}, 0);
        const Schedule schedule = builder.take();
        addRings(rings, schedule, planSlots(schedule, static_cast<uint32_t>(ranks), {}), Protocol::Packet);
      }
      uint64_t bytes = 0;
      for (const auto& [key, size] : rings) bytes += size;
      EXPECT_LT(bytes, NodeMemory::kRegionBytes - 128 * 1024) << ranks << " ranks, rank " << rank;
    }
}

TEST(SlotPlan, IsTheSameOnAllRanks) {
  for (const AlgorithmRow& row : algorithmRows())
    for (const int ranks : {2, 3, 6, 8, 13, 64}) {
      const SlotPlan first = plan(row, row.emit(flatLayout(ranks), 0, 0));
      for (int rank = 1; rank < ranks; ++rank) {
        const SlotPlan other = plan(row, row.emit(flatLayout(ranks), rank, 0));
        EXPECT_EQ(other.slots, first.slots) << name(row.collective) << name(row.algorithm);
        EXPECT_EQ(other.slotBytes, first.slotBytes) << name(row.collective) << name(row.algorithm);
      }
    }
}

TEST(SlotPlan, TakesWishesAsFarAsTheyMakeSense) {
  for (const AlgorithmRow& row : algorithmRows()) {
    const Schedule schedule = row.emit(flatLayout(8), 3, 0);
    for (const uint64_t slotBytes : {1U, 63U, 64U, 1000U, 4096U, 1U << 20})
      for (const uint32_t slots : {1U, 2U, 3U, 1000U}) {
        const SlotPlan wished = plan(row, schedule, {slots, slotBytes, 0});
        EXPECT_TRUE(std::has_single_bit(wished.slots));
        EXPECT_GE(wished.slots, std::max(slots, schedule.minSlots));
        EXPECT_GE(wished.slotBytes, kGranuleBytes * schedule.slotChunks);
        EXPECT_EQ(wished.slotBytes % (kGranuleBytes * schedule.slotChunks), 0U);
      }
    EXPECT_LE(plan(row, schedule, {0, 0, 8192}).slotBytes, plan(row, schedule).slotBytes);
    EXPECT_THROW(plan(row, schedule, {0, uint64_t{1} << 40, 0}), Error);
  }
}

// Spans of hundreds of chunks once made the lower bound of a slot larger than the upper one.
TEST(SlotPlan, TakesSpansOfAnySize) {
  const AlgorithmRow& halving = row(Collective::AllReduce, Algorithm::HalvingDoubling);
  const Schedule schedule = halving.emit(flatLayout(2048), 7, 0);
  EXPECT_GE(plan(halving, schedule).slotBytes, kGranuleBytes * schedule.slotChunks);
}

}  // namespace
}  // namespace topoccl
