// From chunk and piece to elements: the only code that does this.
//
//   buffer of `count` elements
//   |------ chunk 0 ------|------ chunk 1 ------|--- chunk 2 ---|     chunks: equal to one granule
//   |piece 0|piece 1| p 2 |piece 0|piece 1| p 2 |  p 0  | p1|   |     pieces: what one slot holds
//
// A granule is a cache line of elements, so that chunks start aligned where the buffer does. Chunks differ
// by at most one granule, the last may be shorter; chunks beyond the data are empty. Piece p of a chunk is
// its elements [p * pieceElements, (p + 1) * pieceElements), possibly none. All ranks compute the same map
// from count, element size, chunks and slot size.
#pragma once

#include <cstdint>

#include "base/portable.h"

namespace topoccl {

struct ElementRange {
  uint64_t begin = 0;
  uint64_t count = 0;
};

struct ChunkMap {
  uint64_t count = 0;          // elements in the buffer
  uint64_t granule = 1;        // elements
  uint64_t base = 0;           // granules in every chunk
  uint64_t extra = 0;          // the first `extra` chunks have one granule more
  uint64_t pieceElements = 1;  // a multiple of granule
  uint64_t pieces = 1;         // maximum over chunks, at least 1
};

inline constexpr uint64_t kGranuleBytes = 64;

// `slotBytes` is what a slot holds and must take `maxSpan` granules.
TOPOCCL_HOST_DEVICE inline ChunkMap makeChunkMap(uint64_t count, uint64_t elementBytes, uint32_t chunks,
                                                 uint64_t slotBytes, uint32_t maxSpan) {
  ChunkMap map;
  map.count = count;
  map.granule = kGranuleBytes / elementBytes;
  const uint64_t granules = (count + map.granule - 1) / map.granule;
  map.base = granules / chunks;
  map.extra = granules % chunks;
  map.pieceElements = slotBytes / maxSpan / kGranuleBytes * map.granule;
  const uint64_t longest = (map.base + (map.extra != 0 ? 1 : 0)) * map.granule;
  map.pieces = longest > map.pieceElements ? (longest + map.pieceElements - 1) / map.pieceElements : 1;
  return map;
}

TOPOCCL_HOST_DEVICE inline ElementRange chunkRange(const ChunkMap& map, uint64_t chunk) {
  const uint64_t first = (chunk * map.base + (chunk < map.extra ? chunk : map.extra)) * map.granule;
  const uint64_t begin = first < map.count ? first : map.count;
  const uint64_t last = first + (map.base + (chunk < map.extra ? 1 : 0)) * map.granule;
  return {begin, (last < map.count ? last : map.count) - begin};
}

TOPOCCL_HOST_DEVICE inline ElementRange pieceRange(const ChunkMap& map, uint64_t chunk, uint64_t piece) {
  const ElementRange whole = chunkRange(map, chunk);
  const uint64_t skip = piece * map.pieceElements < whole.count ? piece * map.pieceElements : whole.count;
  const uint64_t rest = whole.count - skip;
  return {whole.begin + skip, rest < map.pieceElements ? rest : map.pieceElements};
}

}  // namespace topoccl
