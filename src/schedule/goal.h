// What a collective promises: which contributions every rank must find in `out`, and which buffers it has.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "schedule/step.h"

namespace topoccl {

// An out chunk must be the sum of in chunk `chunk` of ranks [firstRank, firstRank + ranks), each exactly
// once. With one rank it is a copy; with none, what the chunk holds does not matter.
struct Wanted {
  int firstRank = 0;
  int ranks = 0;
  uint32_t chunk = 0;

  auto operator<=>(const Wanted&) const = default;
};

// `final`: the collective reduces, and the results have had the operator's last action (integer average's
// division) exactly once; else data only moves, and reading `in` multiplies by nothing.
// `inPlace`: in and out may be the same memory, chunk by chunk: an all-gather's `in` is then the rank's own
// block of `out`. `present`: whether the rank has that chunk of in or out; what it lacks must not be touched.
struct Goal {
  std::string name;
  bool final = false;
  bool inPlace = true;
  std::function<Wanted(int rank, uint32_t outChunk)> wanted;
  std::function<bool(int rank, Place buffer, uint32_t chunk)> present;
};

// The goal of NCCL's collective of that name; `root` where it has one.
//
//   collective        blocks   in                out               out chunk of block b
//   all-reduce        1        all               all               sum over ranks
//   broadcast         1        the root's        all               the root's
//   reduce            1        all               the root's        sum over ranks
//   all-gather        ranks    own block         all               rank b's
//   reduce-scatter    ranks    all               own block         sum over ranks
//   gather            ranks    own block         all of the root   rank b's
//   scatter           ranks    all of the root   own block         the root's
//   all-to-all        ranks    all               all               rank b's, the block for this rank
Goal goalOf(Collective collective, int ranks, int root = 0);

// How many blocks the buffers of a collective have.
uint32_t blocksOf(Collective collective, int ranks);

// Whether a collective has an operator: Goal::final.
bool reduces(Collective collective);

// Whether one rank has other buffers than the rest.
bool hasRoot(Collective collective);

// Whether in and out may be the same memory: Goal::inPlace.
bool allowsInPlace(Collective collective);

// What a rank has of one buffer.
enum class Presence : uint8_t { None, OwnBlock, All };
Presence presenceOf(Collective collective, Place buffer, bool isRoot);

}  // namespace topoccl
