// The buffers of all ranks as the checker sees them: one cell per piece of a chunk, with the value that it
// holds and the accesses that later ones must be ordered after.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/check/clocks.h"
#include "schedule/check/symbols.h"
#include "schedule/goal.h"
#include "schedule/step.h"

namespace topoccl {

struct Cell {
  Value value = Symbols::kUnwritten;
  bool asIn = true, asOut = true;  // whether its rank has it as a chunk of in, of out
  Access write;
  std::vector<Access> reads;  // since the write
};

class Memory {
 public:
  // In place, in and out of a rank are the same cells.
  Memory(const std::vector<Schedule>& schedules, const Goal& goal, uint64_t pieces, bool inPlace);

  // Cells per piece: ask before making one.
  static uint64_t chunks(const std::vector<Schedule>& schedules, bool inPlace);

  Cell& cell(int rank, Place buffer, uint32_t chunk, uint64_t piece);
  static bool present(const Cell& cell, Place buffer) {
    return buffer == Place::Scratch || (buffer == Place::In ? cell.asIn : cell.asOut);
  }

  // Whether the two places of one rank are the same memory.
  bool alias(Place a, Place b) const;

 private:
  struct Bases {
    uint64_t in, out, scratch;
  };

  void markAbsent(const Schedule& schedule, const Goal& goal);

  uint64_t pieces_;
  bool inPlace_;
  std::vector<Bases> bases_;  // by rank
  std::vector<Cell> cells_;
};

// Notes an access and returns the earlier one that it is not ordered after, or null. `knows(access)` says
// whether an access is ordered before this one.
template <class Knows>
const Access* read(Cell& cell, const Access& access, const Knows& knows) {
  if (!knows(cell.write)) return &cell.write;
  cell.reads.push_back(access);
  return nullptr;
}

template <class Knows>
const Access* write(Cell& cell, const Access& access, const Knows& knows) {
  if (!knows(cell.write)) return &cell.write;
  for (const Access& earlier : cell.reads)
    if (!knows(earlier)) return &earlier;
  cell.write = access;
  cell.reads.clear();
  return nullptr;
}

}  // namespace topoccl
