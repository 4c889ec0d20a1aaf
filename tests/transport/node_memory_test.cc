// Node memory: rings are found by key and shape; memory that others may have scribbled on is never trusted
// with an address; ranks are present as long as their process lives.
#include "transport/node_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "kernels/mix.h"
#include "kernels/sync.h"

namespace topoccl::test {
namespace {

constexpr RingShape kShape{4, 1024, 2};

// What `function` throws, as "code: message"; empty when it doesn't.
std::string thrownBy(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return concat(static_cast<int>(error.code()), ": ", error.what());
  }
  return "";
}

class NodeMemoryKinds : public testing::TestWithParam<bool> {
 protected:
  static NodeMemory make(int ranks) { return NodeMemory(NodeMemory::make(ranks, GetParam()), ranks); }
};

TEST_P(NodeMemoryKinds, RingsAreFoundByProducerAndKey) {
  const NodeMemory memory = make(2);
  NodeMemory owner = make(2);
  RingView found;
  EXPECT_FALSE(owner.findRing(0, 1, kShape, found));
  const RingView first = owner.makeRing(0, 1, kShape);
  const RingView second = owner.makeRing(0, 2, {1, 64, 1});
  const RingView other = owner.makeRing(1, 1, kShape);
  ASSERT_TRUE(owner.findRing(0, 1, kShape, found));
  EXPECT_EQ(found.published(), first.published());
  ASSERT_TRUE(owner.findRing(0, 2, {1, 64, 1}, found));
  EXPECT_EQ(found.published(), second.published());
  ASSERT_TRUE(owner.findRing(1, 1, kShape, found));
  EXPECT_EQ(found.published(), other.published());
  EXPECT_FALSE(owner.findRing(1, 2, kShape, found));
  EXPECT_FALSE(memory.findRing(0, 1, kShape, found)) << "found in other memory";
}

TEST_P(NodeMemoryKinds, RingsDoNotOverlap) {
  NodeMemory memory = make(2);
  std::vector<std::pair<uintptr_t, uintptr_t>> taken;
  for (uint64_t i = 0; i < 40; ++i) {
    const RingShape shape{1U << (i % 4), static_cast<uint32_t>(64 * (1 + i % 7)),
                          static_cast<uint32_t>(1 + i % 3)};
    const RingView ring = memory.makeRing(static_cast<int>(i % 2), i, shape);
    const auto begin = reinterpret_cast<uintptr_t>(&ring.description());
    for (const auto& [from, to] : taken) EXPECT_TRUE(begin + RingView::bytes(shape) <= from || begin >= to);
    taken.emplace_back(begin, begin + RingView::bytes(shape));
    // All of it can be written, and was zero.
    for (uint64_t slot = 0; slot < shape.slots; ++slot) {
      EXPECT_EQ(ring.header(slot).sequence, 0U);
      std::memset(RingView::data(ring.header(slot)), 1, shape.slotBytes);
    }
  }
}

TEST_P(NodeMemoryKinds, AnotherShapeIsAnErrorThatNamesBoth) {
  NodeMemory memory = make(1);
  memory.makeRing(0, 7, kShape);
  for (const RingShape wrong : {RingShape{8, 1024, 2}, RingShape{4, 512, 2}, RingShape{4, 1024, 3}}) {
    RingView ring;
    const std::string error = thrownBy([&] { memory.findRing(0, 7, wrong, ring); });
    EXPECT_NE(error.find("ring of 4 x 1024 bytes for 2 readers"), std::string::npos) << error;
    EXPECT_NE(error.find(concat(wrong.slots, " x ", wrong.slotBytes, " bytes for ", wrong.readers)),
              std::string::npos)
        << error;
  }
}

TEST_P(NodeMemoryKinds, AFullRegionIsAnErrorThatNamesSizes) {
  NodeMemory memory = make(1);
  const RingShape large{4, 1U << 20, 1};
  std::string error;
  for (uint64_t key = 0; key < 8 && error.empty(); ++key)
    error = thrownBy([&] { memory.makeRing(0, key, large); });
  EXPECT_NE(error.find(concat(static_cast<int>(Code::SystemError), ": ")), std::string::npos);
  EXPECT_NE(error.find(concat("needs ", RingView::bytes(large))), std::string::npos) << error;
  EXPECT_NE(error.find(concat("of ", NodeMemory::kRegionBytes, " bytes")), std::string::npos) << error;
  EXPECT_NE(error.find("7 of 4096 entries"), std::string::npos) << error;
  EXPECT_NE(error.find("TOPOCCL_SLOT_BYTES"), std::string::npos) << error;
  memory.makeRing(0, 100, kShape);  // a smaller one still fits
  RingView ring;
  EXPECT_TRUE(memory.findRing(0, 100, kShape, ring));
}

TEST_P(NodeMemoryKinds, AFullDirectoryIsAnError) {
  NodeMemory memory = make(1);
  for (uint64_t key = 0; key < NodeMemory::kDirectoryEntries; ++key) memory.makeRing(0, key, {1, 64, 1});
  const std::string error = thrownBy([&] { memory.makeRing(0, 9999, {1, 64, 1}); });
  EXPECT_NE(error.find("4096 of 4096 entries"), std::string::npos) << error;
}

// A ring that no region can hold is nowhere, whatever the directory says.
TEST_P(NodeMemoryKinds, AShapeLargerThanARegionIsRefused) {
  NodeMemory memory = make(1);
  const RingShape huge{1U << 20, 1U << 30, 1};
  EXPECT_NE(thrownBy([&] { memory.makeRing(0, 1, huge); }), "");
  memory.makeRing(0, 2, kShape);
  RingView ring;
  EXPECT_NE(thrownBy([&] { memory.findRing(0, 2, huge, ring); }), "");
}

// ---- damage ----

// The start of rank 0's region in memory for one rank: entry count, bytes used, then entries of key and
// offset.
uint64_t* directoryOf(const MemoryFile& memory) {
  const uint64_t board = NodeMemory::bytes(1) - NodeMemory::kRegionBytes;
  return reinterpret_cast<uint64_t*>(memory.data() + board);
}

struct Damaged {
  Damaged() : file(NodeMemory::make(1, false)), directory(directoryOf(file)), memory(std::move(file), 1) {
    memory.makeRing(0, 42, kShape);
  }

  MemoryFile file;
  uint64_t* directory;
  NodeMemory memory;
};

constexpr size_t kEntryWords = 8;  // where entries begin: one cache line after the counts

TEST(DamagedDirectory, TheTestKnowsItsLayout) {
  const Damaged damaged;
  EXPECT_EQ(damaged.directory[0], 1U);
  EXPECT_EQ(damaged.directory[kEntryWords], 42U);
}

TEST(DamagedDirectory, NoOffsetLeadsOutside) {
  for (const uint64_t offset :
       {uint64_t{0}, uint64_t{64}, uint64_t{65537}, NodeMemory::kRegionBytes - 64, NodeMemory::kRegionBytes,
        NodeMemory::kRegionBytes + 64, uint64_t{1} << 40, UINT64_MAX - 63, UINT64_MAX}) {
    Damaged damaged;
    damaged.directory[kEntryWords + 1] = offset;
    RingView ring;
    EXPECT_NE(thrownBy([&] { damaged.memory.findRing(0, 42, kShape, ring); }), "") << offset;
  }
}

TEST(DamagedDirectory, NoCountLeadsOutside) {
  for (const uint64_t count : {uint64_t{4097}, uint64_t{1} << 40, UINT64_MAX}) {
    Damaged damaged;
    damaged.directory[0] = count;
    RingView ring;
    EXPECT_NE(thrownBy([&] { damaged.memory.findRing(0, 42, kShape, ring); }), "") << count;
    EXPECT_NE(thrownBy([&] { damaged.memory.makeRing(0, 43, kShape); }), "") << count;
  }
  for (const uint64_t used : {uint64_t{64}, NodeMemory::kRegionBytes + 64, uint64_t{1} << 40, UINT64_MAX}) {
    Damaged damaged;
    damaged.directory[1] = used;
    EXPECT_NE(thrownBy([&] { damaged.memory.makeRing(0, 43, kShape); }), "") << used;
  }
}

TEST(DamagedDirectory, RandomBytesGiveAnErrorOrARingInside) {
  std::mt19937_64 random(20240607);
  for (int round = 0; round < 300; ++round) {
    Damaged damaged;
    const uint64_t words = 1 + random() % 20;
    for (uint64_t i = 0; i < words; ++i) {
      // Small numbers too: those pass more checks.
      const uint64_t value = random() >> (random() % 64);
      damaged.directory[random() % 20] = random() % 4 == 0 ? 42 : value;
    }
    RingView ring;
    bool found = false;
    thrownBy([&] { found = damaged.memory.findRing(0, 42, kShape, ring); });
    if (!found) continue;
    const auto at = reinterpret_cast<unsigned char*>(&ring.description());
    const auto begin = reinterpret_cast<unsigned char*>(damaged.directory);
    EXPECT_TRUE(at >= begin && at + RingView::bytes(kShape) <= begin + NodeMemory::kRegionBytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % kLineBytes, 0U);
    thrownBy([&] { damaged.memory.makeRing(0, 43, kShape); });
  }
}

// A reader that finds the ring finds it complete, whenever it looks.
TEST(NodeMemory, RingsAppearWhole) {
  constexpr uint64_t kRings = 500;
  NodeMemory memory(NodeMemory::make(1, false), 1);
  std::thread maker([&] {
    for (uint64_t key = 0; key < kRings; ++key) memory.makeRing(0, key, {2, 64, 1});
  });
  uint64_t slotsSeen = 0;
  for (uint64_t key = 0; key < kRings; ++key) {
    RingView ring;
    while (!memory.findRing(0, key, {2, 64, 1}, ring)) std::this_thread::yield();
    slotsSeen += ring.description().shape.slots;
  }
  maker.join();
  EXPECT_EQ(slotsSeen, 2 * kRings);
}

INSTANTIATE_TEST_SUITE_P(Kinds, NodeMemoryKinds, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& which) {
                           return std::string(which.param ? "shared" : "anonymous");
                         });

}  // namespace
}  // namespace topoccl::test
