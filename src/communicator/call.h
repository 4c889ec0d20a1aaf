// What the user asked for, as values.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/combine_args.h"
#include "kernels/types.h"
#include "schedule/step.h"

namespace topoccl {

// How a collective reduces. `scaled`: every rank multiplies its input by its own `scale` first (NCCL's
// pre-multiplied sum).
struct Reduction {
  Operator op = Operator::Sum;
  bool scaled = false;
  ScaleValue scale;
};

// `count` elements of `type` in each block of the buffers (goal.h says how many blocks there are, and which
// of them a rank has); root -1 where there is none.
struct CollectiveCall {
  Collective collective = Collective::AllReduce;
  const void* send = nullptr;
  void* receive = nullptr;
  uint64_t count = 0;
  DataType type = DataType::Float32;
  Reduction reduction;  // of collectives that reduce
  int root = -1;
};

// A send to `peer` from, or a receive from it to, `buffer`.
struct PeerCall {
  bool sends = false;
  int peer = 0;
  void* buffer = nullptr;  // read only where it sends
  uint64_t count = 0;
  DataType type = DataType::Float32;
};

// Whether a collective reduces; else it has no operator.
bool reduces(Collective collective);
// Whether it has a root.
bool hasRoot(Collective collective);

}  // namespace topoccl
