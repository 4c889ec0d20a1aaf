// Which elements a step moves: one range of consecutive elements at a time.
#pragma once

#include <cstdint>

#include "base/portable.h"
#include "schedule/chunk_map.h"
#include "schedule/step.h"

namespace topoccl {

// Where chunks are whole pieces and lie side by side a span is one extent. Otherwise one per chunk.
TOPOCCL_HOST_DEVICE inline bool wholeSpans(const ChunkMap& map) {
  return map.pieces == 1 && chunksAdjoin(map);
}

TOPOCCL_HOST_DEVICE inline uint32_t extentsOf(const ChunkMap& map, const Step& step) {
  return step.span == 1 || wholeSpans(map) ? 1 : step.span;
}

// The extent of that index of the `span` chunks from `chunk` on.
TOPOCCL_HOST_DEVICE inline ElementRange extentRange(const ChunkMap& map, uint32_t chunk, uint32_t span,
                                                    uint32_t index, uint64_t piece) {
  if (span == 1 || !wholeSpans(map)) return pieceRange(map, chunk + index, piece);
  const ElementRange first = chunkRange(map, chunk);
  const ElementRange last = chunkRange(map, chunk + span - 1);
  return {first.begin, last.begin + last.count - first.begin};
}

// What a step moves in all.
TOPOCCL_HOST_DEVICE inline uint64_t stepElements(const ChunkMap& map, const Step& step, uint64_t piece) {
  uint64_t elements = 0;
  for (uint32_t i = 0; i < extentsOf(map, step); ++i)
    elements += extentRange(map, step.inChunk, step.span, i, piece).count;
  return elements;
}

}  // namespace topoccl
