// The memory that the ranks of one node share: a board with a line per rank, and per rank a region in which
// the rank makes its rings.
//
//   board     poison word | rank lines: doorbell; current call; touching
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
#include "kernels/doorbell.h"
#include "kernels/slot_ring.h"

namespace topoccl {

// A call as its rank posted it: what peers compare and print when slots don't match or nothing arrives.
struct CallDescriptor {
  uint64_t number = 0;  // of this communicator's collectives, from 1; 0 = none yet
  uint64_t count = 0;
  uint8_t collective = 0;
  uint8_t type = 0;
  uint8_t op = 0;
  uint8_t unused = 0;
  int32_t root = -1;

  bool operator==(const CallDescriptor&) const = default;
};

// Written by its rank, read by all.
struct alignas(64) CallLine {
  uint64_t words[3];
};

struct alignas(64) TouchLine {
  uint32_t touching;
  uint32_t left;  // 1 once the rank has destroyed its communicator
};

struct RankLine {
  Doorbell doorbell;
  CallLine call;
  TouchLine touch;
};

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
  RankLine& line(int nodeRank) const { return lines_[nodeRank]; }

  // 0, or the first failure of any rank: (node rank + 1) | code << 32.
  uint64_t* poison() const { return poison_; }

  // Makes a ring in node rank `producer`'s region and announces it under `key`. Only that rank calls this.
  // Throws SystemError when the region is full, naming sizes.
  RingView makeRing(int producer, uint64_t key, RingShape shape);

  // The ring that `producer` announced under `key`. Returns false when there is none yet; throws
  // InternalError when there is one of another shape.
  bool findRing(int producer, uint64_t key, RingShape shape, RingView& ring) const;

  // Posts what `nodeRank` is about to do; reads what another rank posted last. The two may overlap in time:
  // a torn read gives a number of 0.
  void post(int nodeRank, const CallDescriptor& call) const;
  CallDescriptor posted(int nodeRank) const;

 private:
  struct Region;
  Region& region(int nodeRank) const;

  MemoryFile memory_;
  int nodeRanks_;
  uint64_t* poison_;
  RankLine* lines_;
  unsigned char* regions_;
};

}  // namespace topoccl
