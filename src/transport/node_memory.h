// The memory that the ranks of one node share: a board (board.h), and per rank a region in which the rank
// makes its rings.
//
//   board
//   region i  directory of rings | rings of the connections in which node rank i is the producer
//
// One memory file per node (anonymous memory where all ranks live in one process): sparse, so that what no
// ring uses costs nothing. A connection needs no message to be set up: its producer makes the ring and enters
// it in the directory of its region; the others look there until they find it.
//
// "Node rank" numbers the ranks of a node from 0 in rank order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/memory_file.h"
#include "kernels/slot_ring.h"
#include "transport/board.h"

namespace topoccl {

// Rings made so far, appended by the region's rank.
struct DirectoryEntry {
  uint64_t key;
  uint64_t offset;  // of the ring, from the start of the region
};

class NodeMemory {
 public:
  static constexpr uint64_t kRegionBytes = uint64_t{32} << 20;
  static constexpr uint32_t kDirectoryEntries = 4096;

  // Bytes for that many ranks.
  static uint64_t bytes(int nodeRanks);

  // Makes the memory for that many ranks: a file to share with other processes, or memory of this one. Throws
  // SystemError.
  static MemoryFile make(int nodeRanks, bool shared);

  // `memory` has bytes(nodeRanks) and was made by make() here or in another process.
  NodeMemory(MemoryFile memory, int nodeRanks);

  int nodeRanks() const { return nodeRanks_; }
  const Board& board() const { return board_; }

  // A rank of this process is there, until it ends, however it does; and whether that is so of a rank of
  // another process that was there. Stopped is there. A child that was forked is not: it is another process.
  // Where the memory is no file, all are. Throw SystemError.
  void enter(int nodeRank) const;
  bool present(int nodeRank) const;

  // Makes a ring in node rank `producer`'s region and announces it under `key`. Only that rank calls this.
  // Throws SystemError when the region is full, naming sizes.
  RingView makeRing(int producer, uint64_t key, RingShape shape);

  // The ring that `producer` announced under `key`. Returns false when there is none yet; throws
  // InternalError when there is one of another shape.
  bool findRing(int producer, uint64_t key, RingShape shape, RingView& ring) const;

 private:
  struct Region;
  Region& region(int nodeRank) const;

  MemoryFile memory_;
  int nodeRanks_;
  Board board_;
  unsigned char* regions_;
};

}  // namespace topoccl
