#include "schedule/chunk_map.h"

#include <gtest/gtest.h>

namespace topoccl {
namespace {

TEST(ChunkMap, CoversEveryElementOnceInOrder) {
  for (const uint64_t bytes : {1u, 2u, 4u, 8u})
    for (const uint64_t count : {0u, 1u, 15u, 16u, 17u, 64u, 65u, 1000u, 4099u, 65537u})
      for (const uint32_t chunks : {1u, 2u, 3u, 8u, 13u, 64u})
        for (const uint32_t span : {1u, 4u}) {
          const ChunkMap map = makeChunkMap(count, bytes, chunks, 1024, span);
          uint64_t next = 0;
          for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
            const ElementRange whole = chunkRange(map, chunk);
            ASSERT_EQ(whole.begin, next);
            for (uint64_t piece = 0; piece < map.pieces; ++piece) {
              const ElementRange range = pieceRange(map, chunk, piece);
              ASSERT_EQ(range.begin, next);
              ASSERT_LE(range.count * bytes * span, 1024u);
              next += range.count;
            }
            ASSERT_EQ(next, whole.begin + whole.count);
          }
          ASSERT_EQ(next, count);
        }
}

TEST(ChunkMap, MakesChunksEqualToOneGranule) {
  const ChunkMap map = makeChunkMap(1000, 4, 7, 4096, 1);
  EXPECT_EQ(map.granule, 16u);
  uint64_t shortest = UINT64_MAX, longest = 0;
  for (uint32_t chunk = 0; chunk + 1 < 7; ++chunk) {
    const ElementRange range = chunkRange(map, chunk);
    EXPECT_EQ(range.begin % map.granule, 0u);
    shortest = std::min(shortest, range.count);
    longest = std::max(longest, range.count);
  }
  EXPECT_LE(longest - shortest, map.granule);
}

TEST(ChunkMap, HasOnePieceWhenThereIsNothing) {
  const ChunkMap map = makeChunkMap(0, 4, 4, 4096, 1);
  EXPECT_EQ(map.pieces, 1u);
  EXPECT_EQ(pieceRange(map, 3, 0).count, 0u);
}

TEST(ChunkMap, DoesNotOverflowAtTwoToTheForty) {
  const uint64_t count = (uint64_t{1} << 40) + 3;
  const ChunkMap map = makeChunkMap(count, 8, 65536, 1 << 20, 1);
  const ElementRange last = chunkRange(map, 65535);
  EXPECT_EQ(last.begin + last.count, count);
}

// Blocks side by side, all cut alike: chunk c is part c / blocks of block c mod blocks.
TEST(ChunkMap, CutsBlocksAlike) {
  constexpr uint32_t kBlocks = 3, kParts = 4;
  for (const uint64_t count : {uint64_t{0}, uint64_t{1}, uint64_t{17}, uint64_t{1000}}) {
    const ChunkMap whole = makeChunkMap(count, 4, kParts, 256, 1);
    const ChunkMap map = makeChunkMap(count, 4, kBlocks * kParts, 256, 1, kBlocks);
    EXPECT_EQ(map.pieces, whole.pieces);
    for (uint32_t part = 0; part < kParts; ++part)
      for (uint32_t block = 0; block < kBlocks; ++block)
        for (uint64_t piece = 0; piece < map.pieces; ++piece) {
          const ElementRange expected = pieceRange(whole, part, piece);
          const ElementRange range = pieceRange(map, part * kBlocks + block, piece);
          EXPECT_EQ(range.begin, block * count + expected.begin);
          EXPECT_EQ(range.count, expected.count);
        }
  }
}

TEST(ChunkMap, KnowsWhereConsecutiveChunksAdjoin) {
  EXPECT_TRUE(chunksAdjoin(makeChunkMap(100, 4, 8, 256, 1)));
  EXPECT_TRUE(chunksAdjoin(makeChunkMap(100, 4, 8, 256, 1, 8)));
  EXPECT_FALSE(chunksAdjoin(makeChunkMap(100, 4, 8, 256, 1, 4)));
}

}  // namespace
}  // namespace topoccl
