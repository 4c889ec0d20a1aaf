// What every emitter keeps, and each one's steps in its own words.
#include <gtest/gtest.h>

#include "algorithms/emitters.h"
#include "base/error.h"
#include "schedule/text.h"
#include "schedule/validate.h"

namespace topoccl {
namespace {

class Emitters : public testing::TestWithParam<Emitter> {};

INSTANTIATE_TEST_SUITE_P(All, Emitters, testing::ValuesIn(algorithmRows()), parameterName);

TEST_P(Emitters, SurviveBeingPrintedAndParsed) {
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 13, 16, 33})
    for (const int channels : {1, 2, 3})
      for (const Schedule& schedule : emitAll(GetParam(), ranks, channels, ranks / 2)) {
        const std::string text = print(schedule);
        const Schedule again = parse(text);
        ASSERT_EQ(again, schedule) << text;
        ASSERT_EQ(print(again), text);
      }
}

TEST_P(Emitters, KeepTheRulesOfASingleSchedule) {
  for (const int ranks : {1, 2, 3, 6, 8, 11})
    for (const Schedule& schedule : emitAll(GetParam(), ranks, 2, ranks - 1))
      ASSERT_EQ(flawOfSchedule(schedule), "");
}

TEST_P(Emitters, CopyWhenThereIsOneRank) {
  EXPECT_EQ(print(emitAll(GetParam(), 1)[0]),
            "rank 0 of 1, chunks 1, scratch 0, slots 1\n"
            "lane 0\n" +
                std::string("  0: in -> out") + (goalOf(GetParam(), 1).final ? " final\n" : "\n"));
}

TEST_P(Emitters, RefuseRanksOutsideTheLayout) {
  EXPECT_THROW(GetParam().emit(flatLayout(4), -1, 0), Error);
  EXPECT_THROW(GetParam().emit(flatLayout(4), 4, 0), Error);
  EXPECT_THROW(GetParam().emit(Layout{4, {}}, 0, 0), Error);
}

TEST_P(Emitters, GiveEachChannelItsOwnLanesAndChunks) {
  for (const int ranks : {2, 5, 8}) {
    const Schedule one = GetParam().emit(flatLayout(ranks), 1, 0);
    const Schedule three = GetParam().emit(flatLayout(ranks, 3), 1, 0);
    EXPECT_EQ(three.chunks, 3 * one.chunks);
    EXPECT_EQ(three.lanes.size(), 3 * one.lanes.size());
    EXPECT_EQ(three.connections.size(), 3 * one.connections.size());
    EXPECT_EQ(three.slotChunks, one.slotChunks);
  }
}

TEST(Ring, FollowsTheLayoutsOrder) {
  Layout layout = flatLayout(4);
  layout.channels[0].ring = {0, 2, 1, 3};
  EXPECT_EQ(print(emitRingAllReduce(layout, 2)),
            "rank 2 of 4, chunks 4, scratch 0, slots 2\n"
            "connection 0: 0 -> 2 channel 0 tag 0\n"
            "connection 1: 2 -> 1 channel 0 tag 0\n"
            "lane 0\n"
            "  0: in -> s1\n"
            "  3: r0 + in -> s1\n"
            "  2: r0 + in -> s1\n"
            "  1: r0 + in -> out, s1 final\n"
            "  0: r0 -> out, s1\n"
            "  3: r0 -> out, s1\n"
            "  2: r0 -> out\n");
}

TEST(Tree, HasAnUpLaneAndADownLanePerTree) {
  EXPECT_EQ(print(emitTreeAllReduce(flatLayout(6), 1)),
            "rank 1 of 6, chunks 2, scratch 0, slots 1\n"
            "connection 0: 0 -> 1 channel 0 tag 0\n"
            "connection 1: 2 -> 1 channel 0 tag 0\n"
            "connection 2: 1 -> 3 channel 0 tag 0\n"
            "connection 3: 3 -> 1 channel 0 tag 0\n"
            "connection 4: 1 -> 0 channel 0 tag 0\n"
            "connection 5: 1 -> 2 channel 0 tag 0\n"
            "connection 6: 1 -> 0 channel 0 tag 1\n"
            "connection 7: 0 -> 1 channel 0 tag 1\n"
            "lane 0\n"
            "  0: r0 + in + r1 -> s2\n"
            "lane 1\n"
            "  0: r3 -> out, s4, s5\n"
            "lane 2\n"
            "  1: in -> s6\n"
            "lane 3\n"
            "  1: r7 -> out\n");
}

TEST(MeshOneShot, ReducesInTheSameOrderEverywhere) {
  EXPECT_EQ(print(emitMeshOneShotAllReduce(flatLayout(3), 1)),
            "rank 1 of 3, chunks 1, scratch 0, slots 1, copy in place\n"
            "connection 0: 1 -> 0,2 channel 0 tag 1\n"
            "connection 1: 0 -> 1,2 channel 0 tag 1\n"
            "connection 2: 2 -> 0,1 channel 0 tag 1\n"
            "lane 0\n"
            "  0: in -> s0\n"
            "  0: r1 + in + r2 -> out final\n");
}

TEST(MeshTwoShot, StartsBehindItsOwnRank) {
  EXPECT_EQ(print(emitMeshTwoShotAllReduce(flatLayout(3), 1)),
            "rank 1 of 3, chunks 3, scratch 0, slots 1\n"
            "connection 0: 1 -> 2 channel 0 tag 0\n"
            "connection 1: 1 -> 0 channel 0 tag 0\n"
            "connection 2: 0 -> 1 channel 0 tag 0\n"
            "connection 3: 2 -> 1 channel 0 tag 0\n"
            "connection 4: 1 -> 0,2 channel 0 tag 1\n"
            "connection 5: 2 -> 0,1 channel 0 tag 1\n"
            "connection 6: 0 -> 1,2 channel 0 tag 1\n"
            "lane 0\n"
            "  2: in -> s0\n"
            "  0: in -> s1\n"
            "lane 1\n"
            "  1: r2 + in + r3 -> out, s4 final\n"
            "lane 2\n"
            "  2: r5 -> out\n"
            "  0: r6 -> out\n");
}

TEST(HalvingDoubling, SendsHalvesInOneMessage) {
  EXPECT_EQ(print(emitHalvingDoublingAllReduce(flatLayout(4), 1)),
            "rank 1 of 4, chunks 4, scratch 4, slots 1 of 2 chunks\n"
            "connection 0: 1 -> 3 channel 0 tag 0\n"
            "connection 1: 3 -> 1 channel 0 tag 0\n"
            "connection 2: 1 -> 0 channel 0 tag 0\n"
            "connection 3: 0 -> 1 channel 0 tag 0\n"
            "lane 0\n"
            "  2-3: in -> s0\n"
            "  0-1: in + r1 -> scratch\n"
            "  0: scratch -> s2\n"
            "  1: r3 + scratch -> out final\n"
            "  1: out -> s2\n"
            "  0: r3 -> out\n"
            "  0-1: out -> s0\n"
            "  2-3: r1 -> out\n");
}

TEST(HalvingDoubling, FoldsSurplusRanksIntoTheirNeighbours) {
  EXPECT_EQ(print(emitHalvingDoublingAllReduce(flatLayout(3), 1)),
            "rank 1 of 3, chunks 2, scratch 0, slots 1\n"
            "connection 0: 1 -> 0 channel 0 tag 0\n"
            "connection 1: 0 -> 1 channel 0 tag 0\n"
            "lane 0\n"
            "  1: in -> s0\n"
            "  0: in -> s0\n"
            "  0: r1 -> out\n"
            "  1: r1 -> out\n");
  EXPECT_EQ(print(emitHalvingDoublingAllReduce(flatLayout(3), 0)),
            "rank 0 of 3, chunks 2, scratch 0, slots 1\n"
            "connection 0: 1 -> 0 channel 0 tag 0\n"
            "connection 1: 0 -> 2 channel 0 tag 0\n"
            "connection 2: 2 -> 0 channel 0 tag 0\n"
            "connection 3: 0 -> 1 channel 0 tag 0\n"
            "lane 0\n"
            "  1: in + r0 -> s1\n"
            "  0: in + r0 + r2 -> out final\n"
            "  0: out -> s1, s3\n"
            "  1: r2 -> out, s3\n");
}

}  // namespace
}  // namespace topoccl
