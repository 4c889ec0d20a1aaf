// What the user asked for, as values.
#pragma once

#include <cstdint>
#include <variant>

#include "kernels/combine_args.h"
#include "kernels/types.h"
#include "schedule/goal.h"

namespace topoccl {

// How a collective reduces. `scaled`: every rank multiplies its input by its own `scale` first (NCCL's
// pre-multiplied sum); with `scalar` it is the element there when the call runs.
struct Reduction {
  Operator op = Operator::Sum;
  bool scaled = false;
  ScaleValue scale;
  const void* scalar = nullptr;
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

// A buffer that has only the rank's own block, seen as the whole: the address where block 0 would be. In
// place is then the same address, for every collective.
inline uintptr_t wholeAddress(const void* buffer, Presence presence, int rank, uint64_t blockBytes) {
  const auto address = reinterpret_cast<uintptr_t>(buffer);
  return presence == Presence::OwnBlock ? address - static_cast<uint64_t>(rank) * blockBytes : address;
}

using AnyCall = std::variant<CollectiveCall, PeerCall>;

}  // namespace topoccl
