// From chunk and piece to elements: the only code that does this.
//
//   block of `count` elements
//   |------- part 0 ------|------- part 1 ------|--- part 2 ----|     parts: equal to one granule
//   |piece 0|piece 1| p 2 |piece 0|piece 1| p 2 |  p 0  | p1|   |     pieces: what one slot holds
//
// A buffer is one block (all-reduce), or one block per rank, side by side (all-gather's result). All blocks
// are cut alike: chunk c is part c / blocks of block c mod blocks. A granule is a cache line of elements, so
// that parts start aligned where their block does. Parts differ by at most one granule, the last may be
// shorter; parts beyond the data are empty. Piece p of a chunk is its elements [p * pieceElements,
// (p + 1) * pieceElements), possibly none. All ranks compute the same map from count, element size, chunks,
// blocks and slot size.
#pragma once

#include <cstdint>

#include "base/portable.h"

namespace topoccl {

struct ElementRange {
  uint64_t begin = 0;
  uint64_t count = 0;
};

struct ChunkMap {
  uint64_t count = 0;          // elements in a block
  uint32_t blocks = 1;         // of the buffer
  uint32_t parts = 1;          // of a block
  uint64_t granule = 1;        // elements
  uint64_t base = 0;           // granules in every part
  uint64_t extra = 0;          // the first `extra` parts have one granule more
  uint64_t pieceElements = 1;  // a multiple of granule
  uint64_t pieces = 1;         // maximum over chunks, at least 1
};

inline constexpr uint64_t kGranuleBytes = 64;

// `chunks` is a multiple of `blocks`. `slotBytes` is what a slot holds and must take `maxSpan` granules.
TOPOCCL_HOST_DEVICE inline ChunkMap makeChunkMap(uint64_t count, uint64_t elementBytes, uint32_t chunks,
                                                 uint64_t slotBytes, uint32_t maxSpan, uint32_t blocks = 1) {
  ChunkMap map;
  map.count = count;
  map.blocks = blocks;
  map.parts = chunks / blocks;
  map.granule = kGranuleBytes / elementBytes;
  const uint64_t granules = (count + map.granule - 1) / map.granule;
  map.base = granules / map.parts;
  map.extra = granules % map.parts;
  map.pieceElements = slotBytes / maxSpan / kGranuleBytes * map.granule;
  const uint64_t longest = (map.base + (map.extra != 0 ? 1 : 0)) * map.granule;
  map.pieces = longest > map.pieceElements ? (longest + map.pieceElements - 1) / map.pieceElements : 1;
  return map;
}

TOPOCCL_HOST_DEVICE inline ElementRange chunkRange(const ChunkMap& map, uint32_t chunk) {
  const uint32_t block = map.blocks == 1 ? 0 : chunk % map.blocks;
  const uint64_t part = map.blocks == 1 ? chunk : chunk / map.blocks;
  const uint64_t first = (part * map.base + (part < map.extra ? part : map.extra)) * map.granule;
  const uint64_t begin = first < map.count ? first : map.count;
  const uint64_t last = first + (map.base + (part < map.extra ? 1 : 0)) * map.granule;
  return {block * map.count + begin, (last < map.count ? last : map.count) - begin};
}

// Whether consecutive chunks lie side by side: then so do the chunks of a span.
TOPOCCL_HOST_DEVICE inline bool chunksAdjoin(const ChunkMap& map) {
  return map.blocks == 1 || map.parts == 1;
}

TOPOCCL_HOST_DEVICE inline ElementRange pieceRange(const ChunkMap& map, uint32_t chunk, uint64_t piece) {
  const ElementRange whole = chunkRange(map, chunk);
  const uint64_t skip = piece * map.pieceElements < whole.count ? piece * map.pieceElements : whole.count;
  const uint64_t rest = whole.count - skip;
  return {whole.begin + skip, rest < map.pieceElements ? rest : map.pieceElements};
}

}  // namespace topoccl
