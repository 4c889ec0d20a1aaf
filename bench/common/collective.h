// What differs between the benches: one small class per collective, the rest is shared.
#pragma once

#include <cstddef>
#include <vector>

#include "nccl.h"

namespace topoccl::bench {

// Elements per rank of one call.
struct Shape {
  size_t send = 0;           // read by every rank
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

class Collective {
 public:
  virtual ~Collective() = default;

  virtual const char* program() const = 0;  // "all_reduce_perf"
  virtual const char* name() const = 0;     // as topocclCommExplain knows it
  virtual bool reduces() const = 0;         // takes -o
  virtual bool hasRoot() const = 0;         // takes -r
  // All ranks end with the same bytes, which are compared.
  virtual bool sameEverywhere() const = 0;

  // For a row of `count` elements.
  virtual Shape shape(size_t count, int ranks) const = 0;
  // Bytes that "algbw" counts, and what "busbw" multiplies it by.
  virtual double algorithmBytes(const Shape& shape, size_t elementBytes, int ranks) const = 0;
  virtual double busFactor(int ranks) const = 0;

  virtual ncclResult_t start(const Call& call) const = 0;
  virtual std::vector<Segment> expected(const Shape& shape, int rank, int ranks, int root) const = 0;
};

}  // namespace topoccl::bench
