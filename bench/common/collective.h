// What differs between the benches: one small class per collective, the rest is shared.
#pragma once

#include <cstddef>
#include <vector>

#include "nccl.h"

namespace topoccl::bench {

// Elements of one call; the same on every rank.
struct Shape {
  size_t send = 0;           // read
  size_t receive = 0;        // written
  size_t argument = 0;       // the call's count argument
  size_t sendOffset = 0;     // in place, rank r sends from element r * sendOffset of the receive buffer
  size_t receiveOffset = 0;  // and receives at element r * receiveOffset
};

// A stretch of a rank's result: elements first, first + 1, ... of rank `source`'s input, or of the
// reduction of all inputs.
struct Segment {
  static constexpr int kReduced = -1;
  size_t offset = 0;  // in the result
  size_t count = 0;
  int source = kReduced;
  size_t first = 0;
};

struct Call {
  const void* send;
  void* receive;
  size_t count;  // Shape::argument
  ncclDataType_t type;
  ncclRedOp_t op;
  int root;
  int rank;
  int ranks;
  ncclComm_t comm;
};

struct Traits {
  const char* program;          // "all_reduce_perf"
  const char* name;             // as topocclCommExplain knows it
  bool reduces = false;         // takes -o
  bool hasRoot = false;         // takes -r
  bool sameEverywhere = false;  // all ranks end with the same bytes, which are compared
  bool runsInPlace = true;
};

class Collective {
 public:
  explicit Collective(const Traits& traits) : traits_(traits) {}
  virtual ~Collective() = default;
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

  const Traits& traits() const { return traits_; }

  // For a row whose larger buffer has up to `count` elements.
  virtual Shape shape(size_t count, int ranks) const = 0;
  // What "busbw" multiplies "algbw" by, which counts the larger buffer.
  virtual double busFactor(int ranks) const = 0;

  virtual ncclResult_t start(const Call& call) const = 0;
  // In ascending order. Between segments the receive buffer must stay as it was.
  virtual std::vector<Segment> expected(const Shape& shape, int rank, int ranks, int root) const = 0;

 private:
  const Traits traits_;
};

// Shapes of a row of `count` elements where one side has a block of every rank and the other its own.
inline Shape blockToAll(size_t count, int ranks) {
  const auto n = static_cast<size_t>(ranks);
  const size_t block = count / n;
  return {block, n * block, block, block, 0};
}
inline Shape allToBlock(size_t count, int ranks) {
  const auto n = static_cast<size_t>(ranks);
  const size_t block = count / n;
  return {n * block, block, block, 0, block};
}

// (n-1)/n: of a buffer with a block for every rank, the share that must travel.
inline double shareOfOthers(int ranks) {
  return static_cast<double>(ranks - 1) / ranks;
}

// One block of every rank, in rank order: elements first, first + 1, ... of its input.
inline std::vector<Segment> blocksOfAll(size_t block, int ranks, size_t first) {
  std::vector<Segment> segments;
  for (int rank = 0; rank < ranks; rank++) {
    segments.push_back({static_cast<size_t>(rank) * block, block, rank, first});
  }
  return segments;
}

}  // namespace topoccl::bench
