// The checker with goals other than all-reduce: who must have what, and who has which buffers.
#include "schedule/goal.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "schedule/checker.h"
#include "schedule/text.h"

namespace topoccl {
namespace {

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

// Two ranks, each with a connection to the other; `chunks` is the header's part about them.
std::string pair(int rank, const std::string& lanes, const std::string& chunks = "chunks 1") {
  return concat("rank ", rank, " of 2, ", chunks, ", scratch 0, slots 1\n",
                "connection 0: 0 -> 1 channel 0 tag 0\nconnection 1: 1 -> 0 channel 0 tag 0\n", lanes);
}

std::string verdictOf(const Goal& goal, const std::vector<std::string>& texts) {
  std::vector<Schedule> schedules;
  for (const std::string& text : texts) schedules.push_back(parse(text));
  return check(schedules, goal, {}).message;
}

TEST(Goals, OfABroadcast) {
  const Goal broadcast = goalOf(Collective::Broadcast, 2, 1);
  const auto root = "lane 0\n 0: in -> out, s1\n";
  const auto leaf = "lane 0\n 0: r1 -> out\n";
  const auto verdict = [&](const char* leafs, const char* roots) {
    return verdictOf(broadcast, {pair(0, leafs), pair(1, roots)});
  };
  EXPECT_EQ(verdict(leaf, root), "");
  EXPECT_CONTAINS(verdict("lane 0\n 0: in + r1 -> out\n", root),
                  "uses in chunk 0 of rank 0, which a rank of broadcast does not have there");
  EXPECT_CONTAINS(verdict(leaf, "lane 0\n 0: in -> s1\n"), "rank 1 out chunk 0 piece 0 is never written");
}

TEST(Goals, OfAReduce) {
  const auto root = "lane 0\n 0: in + r1 -> out final\n";
  const auto verdict = [&](const char* leaf) {
    return verdictOf(goalOf(Collective::Reduce, 2, 0), {pair(0, root), pair(1, leaf)});
  };
  EXPECT_EQ(verdict("lane 0\n 0: in -> s1\n"), "");
  EXPECT_CONTAINS(verdict("lane 0\n 0: in -> s1, out\n"),
                  "uses out chunk 0 of rank 1, which a rank of reduce does not have there");
}

// What a rank has of a narrow buffer is its own block.
TEST(Goals, OfAnAllGather) {
  const std::string blocks = "chunks 2 in 2 blocks";
  const auto verdict = [&](const char* first) {
    return verdictOf(goalOf(Collective::AllGather, 2),
                     {pair(0, first, blocks), pair(1, "lane 0\n 1: in -> out, s1\n 0: r0 -> out\n", blocks)});
  };
  EXPECT_EQ(verdict("lane 0\n 0: in -> out, s0\n 1: r1 -> out\n"), "");
  EXPECT_CONTAINS(verdict("lane 0\n 1: in -> out, s0\n 1: r1 -> out\n"),
                  "uses in chunk 1 of rank 0, which a rank of all-gather does not have there");
  EXPECT_CONTAINS(verdict("lane 0\n 0: in -> out, s0\n 1 > 0: r1 -> out\n"), "rank 0 out chunk 0");
}

TEST(Goals, OfAReduceScatter) {
  const std::string blocks = "chunks 2 in 2 blocks";
  const auto verdict = [&](const char* first) {
    return verdictOf(
        goalOf(Collective::ReduceScatter, 2),
        {pair(0, first, blocks), pair(1, "lane 0\n 0: in -> s1\n 1: r0 + in -> out final\n", blocks)});
  };
  EXPECT_EQ(verdict("lane 0\n 1: in -> s0\n 0: in + r1 -> out final\n"), "");
  EXPECT_CONTAINS(verdict("lane 0\n 1: in -> s0\n 0 > 1: in + r1 -> out final\n"),
                  "uses out chunk 1 of rank 0, which a rank of reduce-scatter does not have there");
}

}  // namespace
}  // namespace topoccl
