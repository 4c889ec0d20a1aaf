// Steps, lanes and schedules: what one rank does in one collective call, as data.
//
// A schedule knows no sizes, no element type, no operator and no pointer. It names chunks by index
// (chunk_map.h turns an index into elements) and connections by position in its own table. Everything here
// is a plain value: a schedule is emitted once, may be printed, checked, cached and shared by threads.
//
//   step:   inputs (in the order in which they are reduced)      outputs (all get the same result)
//           receive connection | in | out | scratch        ->    send connection | out | scratch
//
// Every classic primitive is one step: send (in -> s), receive (r -> out), receive-reduce-send
// (r + in -> s), receive-copy-send (r -> s, out), a full-mesh reduction of p inputs, a tree node
// (own + children -> parent). There are no opcodes.
#pragma once

#include <cstdint>
#include <vector>

#include "base/portable.h"

namespace topoccl {

enum class Collective : uint8_t {
  AllReduce,
  Broadcast,
  Reduce,
  AllGather,
  ReduceScatter,
  Gather,
  Scatter,
  AllToAll,
};
inline constexpr int kCollectives = 8;

// How a slot says that it is full: with its own header line (Packet, for latency) or by a counter after the
// data (Bulk).
enum class Protocol : uint8_t { Packet, Bulk };

// Where an operand's data lives. Receive and Send name a connection, the others one of the call's buffers.
enum class Place : uint8_t { Receive, Send, In, Out, Scratch };

struct Operand {
  Place place;
  uint32_t connection = 0;  // index into Schedule::connections; 0 for buffers

  bool operator==(const Operand&) const = default;
};

// `inChunk` is the chunk that input buffers are read at and that received slots must carry; `outChunk` the
// chunk that output buffers are written at and that sent slots carry. Scratch chunks are numbered apart.
// A step covers `span` consecutive chunks from there and moves them in one slot: what makes logarithmic
// algorithms send log2(n) messages rather than n.
struct Step {
  uint32_t firstOperand = 0;  // index into Schedule::operands: inputs, then outputs
  uint32_t inputCount = 0;
  uint32_t outputCount = 0;
  uint32_t inChunk = 0;
  uint32_t outChunk = 0;
  uint32_t span = 1;
  bool final = false;  // apply the operator's last action (integer average's division) to the result

  bool operator==(const Step&) const = default;
};

// A lane is a sequential program: its steps run in order, once per piece. Lanes of one rank run in any
// interleaving.
struct Lane {
  uint32_t firstStep = 0;  // index into Schedule::steps
  uint32_t stepCount = 0;

  bool operator==(const Lane&) const = default;
};

// A one-way FIFO of slots. With several readers it is a broadcast connection: every reader sees the whole
// stream and frees each slot. Both ends derive the same key from the same layout.
struct Connection {
  int from = 0;
  std::vector<int> readers;  // ascending
  int channel = 0;
  int tag = 0;  // tells apart connections of one channel between the same ranks

  bool operator==(const Connection&) const = default;
};

// The lanes of one rank. `chunks` is the number of chunks that each of the call's buffers is cut into, all of
// their `blocks` together (chunk_map.h); of a buffer that has only the rank's own block, the other chunks
// don't exist (goal.h). A slot takes a piece of `slotChunks` chunks, which no span exceeds; the same on all
// ranks. `scratchChunks` that many chunks of the same size the rank needs as working memory; `minSlots` the
// fewest slots per connection with which the schedule can't deadlock, the same on all ranks. `copyInPlace`:
// when in and out are the same memory, slots must hold copies of it, never references, because the rank
// overwrites it while its readers may still be reading.
struct Schedule {
  int ranks = 1;
  int rank = 0;
  uint32_t chunks = 1;
  uint32_t blocks = 1;
  uint32_t slotChunks = 1;
  uint32_t scratchChunks = 0;
  uint32_t minSlots = 1;
  bool copyInPlace = false;
  std::vector<Connection> connections;
  std::vector<Lane> lanes;
  std::vector<Step> steps;
  std::vector<Operand> operands;

  bool operator==(const Schedule&) const = default;
};

// What the stepper reads: the same arrays without ownership, usable on a device.
struct ScheduleView {
  const Lane* lanes = nullptr;
  uint32_t laneCount = 0;
  const Step* steps = nullptr;
  const Operand* operands = nullptr;
};

ScheduleView view(const Schedule& schedule);

}  // namespace topoccl
