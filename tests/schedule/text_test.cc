#include "schedule/text.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "schedule/builder.h"
#include "schedule/validate.h"

namespace topoccl {
namespace {

const char* const kSample =
    "rank 1 of 4, chunks 8 in 4 blocks, scratch 2, slots 3 of 4 chunks, copy in place\n"
    "connection 0: 0 -> 1 channel 0 tag 0\n"
    "connection 1: 1 -> 0,2,3 channel 5 tag 7\n"
    "lane 0\n"
    "  3: r0 + in -> s1, out final\n"
    "  4-7: in -> out\n"
    "  0 > 6: scratch -> out\n"
    "  2-3 > 0-1: out -> scratch\n"
    "lane 1\n";

std::string complaint(const std::string& text) {
  try {
    parse(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::InvalidArgument);
    return error.what();
  }
  return "parsed";
}

TEST(Text, PrintsWhatItParsed) {
  const Schedule schedule = parse(kSample);
  EXPECT_EQ(print(schedule), kSample);
  EXPECT_EQ(schedule.lanes.size(), 2u);
  EXPECT_EQ(schedule.steps[1].span, 4u);
  EXPECT_EQ(schedule.steps[2].outChunk, 6u);
  EXPECT_TRUE(schedule.copyInPlace);
  EXPECT_EQ(schedule.blocks, 4u);
  EXPECT_EQ(schedule.slotChunks, 4u);
  EXPECT_EQ(schedule.connections[1], (Connection{1, {0, 2, 3}, 5, 7}));
}

TEST(Text, IgnoresCommentsBlankLinesAndSpacing) {
  const std::string loose =
      "# the second of four\r\n"
      "\n"
      "rank 1 of 4,chunks 8  in 4 blocks,  scratch 2, slots 3 of  4 chunks, copy in place   # header\n"
      "connection 0 : 0->1 channel 0 tag 0\n"
      "connection 1: 1 -> 0, 2, 3 channel 5 tag 7\n"
      "\tlane 0\n"
      "3:r0+in->s1,out final\n"
      "4 - 7: in -> out\n"
      "0>6: scratch -> out\n"
      "2-3>0-1: out -> scratch\n"
      "lane 1";
  EXPECT_EQ(print(parse(loose)), kSample);
}

// Any valid schedule, not only those that emitters write.
Schedule randomSchedule(std::mt19937& random) {
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  const int ranks = 2 + static_cast<int>(below(5));
  const int rank = static_cast<int>(below(static_cast<uint32_t>(ranks)));
  const uint32_t blocks = 1 + below(4);
  ScheduleBuilder builder(ranks, rank, blocks * (4 + below(20)), blocks);
  builder.slotChunks(1 + below(3));
  builder.scratch(24);
  builder.minSlots(1 + below(4));
  if (below(2) == 0) builder.copyInPlace();
  for (uint32_t lane = 0; lane < 1 + below(3); ++lane) {
    builder.lane();
    for (uint32_t step = 0; step < below(6); ++step) {
      const int peer = static_cast<int>(below(static_cast<uint32_t>(ranks)));
      std::vector<Operand> inputs, outputs;
      if (below(2) == 0) inputs.push_back(builder.receive(peer, static_cast<int>(lane), 0));
      inputs.push_back(below(2) == 0 ? kIn : kScratch);
      if (below(3) == 0) inputs.push_back(kOut);
      if (below(2) == 0) outputs.push_back(kOut);
      outputs.push_back(below(2) == 0 ? builder.send(peer, static_cast<int>(lane), 1) : kScratch);
      const uint32_t inChunk = below(3);
      builder.step(inputs, outputs, inChunk, below(2) == 0 ? inChunk : below(3), 1 + below(2), below(2) == 0);
    }
  }
  return builder.take();
}

TEST(Text, RoundTripsAnySchedule) {
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    const Schedule schedule = randomSchedule(random);
    ASSERT_EQ(flawOfSchedule(schedule), "");
    ASSERT_EQ(parse(print(schedule)), schedule) << print(schedule);
  }
}

TEST(Text, SaysWhichLineIsWrongAndWhatItExpected) {
  const auto after = [](const std::string& lines) {
    return complaint("rank 1 of 4, chunks 8, scratch 0, slots 1\nconnection 0: 0 -> 1 channel 0 tag 0\n" +
                     lines);
  };
  EXPECT_EQ(complaint(""), "expected 'rank N of N, ...' but the text is empty");
  EXPECT_EQ(complaint("rang 1"), "line 1: \"rang 1\": expected 'rank' at \"rang 1\"");
  EXPECT_EQ(complaint("rank 4 of 4, chunks 8, scratch 0, slots 1"),
            "line 1: \"rank 4 of 4, chunks 8, scratch 0, slots 1\": rank 4: there are only 4");
  EXPECT_EQ(complaint("rank 0 of 1, chunks 0, scratch 0, slots 1"),
            "line 1: \"rank 0 of 1, chunks 0, scratch 0, slots 1\": there must be at least one chunk");
  EXPECT_EQ(after("lane 0\n  0: in -> s0\n"),
            "line 4: \"  0: in -> s0\": s0: that connection comes from rank 0");
  EXPECT_EQ(after("lane 0\n  0: r1 -> out\n"),
            "line 4: \"  0: r1 -> out\": expected the number of a connection below 1 at \"1 -> out\"");
  EXPECT_EQ(after("lane 0\n  8: r0 -> out\n"), "line 4: \"  8: r0 -> out\": chunk 8: there are only 8");
  EXPECT_EQ(after("lane 0\n  6-8: r0 -> out\n"),
            "line 4: \"  6-8: r0 -> out\": it spans 3 chunks: a slot takes only 1");
  EXPECT_EQ(
      complaint("rank 0 of 1, chunks 8 in 3 blocks, scratch 0, slots 1"),
      "line 1: \"rank 0 of 1, chunks 8 in 3 blocks, scratch 0, slots 1\": blocks 3: the 8 chunks must be a "
      "multiple of them");
  EXPECT_EQ(
      complaint("rank 0 of 1, chunks 8, scratch 0, slots 1 of 0 chunks"),
      "line 1: \"rank 0 of 1, chunks 8, scratch 0, slots 1 of 0 chunks\": a slot must take at least one "
      "chunk");
  EXPECT_EQ(after("lane 0\n  0: r0 -> scratch\n"),
            "line 4: \"  0: r0 -> scratch\": scratch chunk 0: there are only 0");
  EXPECT_EQ(after("lane 0\n  3-2: r0 -> out\n"),
            "line 4: \"  3-2: r0 -> out\": expected a last chunk not before the first, at \": r0 -> out\"");
  EXPECT_EQ(
      after("lane 0\n  0 > 1-2: r0 -> out\n"),
      "line 4: \"  0 > 1-2: r0 -> out\": expected as many chunks after '>' as before, at \": r0 -> out\"");
  EXPECT_EQ(after("lane 0\n  0: r0 + r0 -> out\n"), "line 4: \"  0: r0 + r0 -> out\": r0 appears twice");
  EXPECT_EQ(after("lane 0\n  0: in -> out, out\n"), "line 4: \"  0: in -> out, out\": out appears twice");
  EXPECT_EQ(after("lane 0\n  0: -> out\n"),
            "line 4: \"  0: -> out\": expected an input (rN, in, out or scratch) at \"-> out\"");
  EXPECT_EQ(after("lane 0\n  0: in -> in\n"),
            "line 4: \"  0: in -> in\": expected an output (sN, out or scratch) at \"in\"");
  EXPECT_EQ(after("lane 0\n  0: in -> out finally\n"),
            "line 4: \"  0: in -> out finally\": expected the end of the line at \"finally\"");
  EXPECT_EQ(after("  0: in -> out\n"),
            "line 3: \"  0: in -> out\": expected 'connection' or 'lane' at \"0: in -> out\"");
  EXPECT_EQ(after("lane 1\n"), "line 3: \"lane 1\": expected number 0");
  EXPECT_EQ(after("lane 0\n  in -> out\n"),
            "line 4: \"  in -> out\": expected a step or 'lane' at \"in -> out\"");
  EXPECT_EQ(after("lane 0\n  0: r0 -> out\nlane 1\n  0: r0 -> out\n"),
            "line 6: \"  0: r0 -> out\": r0 belongs to lane 0");
  EXPECT_EQ(after("lane 0\nconnection 1: 1 -> 0 channel 0 tag 0\n"),
            "line 4: \"connection 1: 1 -> 0 channel 0 tag 0\": connections come before lanes");
  EXPECT_EQ(after("connection 1: 0 -> 1 channel 0 tag 0\n"),
            "line 3: \"connection 1: 0 -> 1 channel 0 tag 0\": that connection is there already");
  EXPECT_EQ(after("connection 1: 0 -> 3 channel 0 tag 0\n"),
            "line 3: \"connection 1: 0 -> 3 channel 0 tag 0\": rank 1 is at neither end");
  EXPECT_EQ(after("connection 1: 1 -> 4 channel 0 tag 0\n"),
            "line 3: \"connection 1: 1 -> 4 channel 0 tag 0\": rank 4: there are only 4");
  EXPECT_EQ(after("connection 1: 1 -> 3,3 channel 0 tag 0\n"),
            "line 3: \"connection 1: 1 -> 3,3 channel 0 tag 0\": readers must ascend");
}

TEST(Text, BoundsNumbersBeforeAnythingIsSizedByThem) {
  EXPECT_NE(complaint("rank 0 of 99999999999999999999999999, chunks 1, scratch 0, slots 1").find("below"),
            std::string::npos);
  EXPECT_NE(complaint("rank 0 of 2, chunks 4294967295, scratch 0, slots 1").find("below"), std::string::npos);
  EXPECT_NE(complaint("rank 0 of 2, chunks 1, scratch 4294967295, slots 1").find("below"), std::string::npos);
  EXPECT_NE(complaint("rank 0 of 2, chunks 1, scratch 0, slots 4294967297").find("below"), std::string::npos);
  EXPECT_NE(
      complaint("rank 0 of 2, chunks 1, scratch 0, slots 1\nlane 0\n 4294967295: in -> out").find("below"),
      std::string::npos);
}

// Damaged text is refused or means something valid; it never does harm.
TEST(Text, SurvivesDamage) {
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string text = kSample;
    for (uint32_t n = 0; n < 1 + random() % 3; ++n) {
      const size_t at = random() % text.size();
      const char symbol = "0123456789rsinout->,:+ #\n\xff"[random() % 26];
      if (random() % 2 == 0)
        text[at] = symbol;
      else if (random() % 2 == 0)
        text.erase(at, 1 + random() % 5);
      else
        text.insert(at, 1, symbol);
      if (text.empty()) text.push_back('#');
    }
    try {
      const Schedule schedule = parse(text);
      ASSERT_EQ(flawOfSchedule(schedule), "") << text;
      ASSERT_EQ(parse(print(schedule)), schedule) << text;
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace topoccl
