#include "schedule/check/memory.h"

namespace topoccl {

Memory::Memory(const std::vector<Schedule>& schedules, const Goal& goal, uint64_t pieces, bool inPlace)
    : pieces_(pieces), inPlace_(inPlace) {
  uint64_t next = 0;
  for (const Schedule& schedule : schedules) {
    Bases bases{};
    bases.in = next;
    bases.out = inPlace ? next : next + schedule.chunks * pieces;
    bases.scratch = bases.out + schedule.chunks * pieces;
    next = bases.scratch + schedule.scratchChunks * pieces;
    bases_.push_back(bases);
  }
  cells_.resize(next);
  for (const Schedule& schedule : schedules) markAbsent(schedule, goal);
}

void Memory::markAbsent(const Schedule& schedule, const Goal& goal) {
  for (uint32_t chunk = 0; chunk < schedule.chunks; ++chunk) {
    const bool asIn = goal.present(schedule.rank, Place::In, chunk);
    const bool asOut = goal.present(schedule.rank, Place::Out, chunk);
    for (uint64_t piece = 0; piece < pieces_; ++piece) {
      cell(schedule.rank, Place::In, chunk, piece).asIn = asIn;
      cell(schedule.rank, Place::Out, chunk, piece).asOut = asOut;
    }
  }
}

uint64_t Memory::chunks(const std::vector<Schedule>& schedules, bool inPlace) {
  uint64_t chunks = 0;
  for (const Schedule& schedule : schedules)
    chunks += uint64_t{schedule.chunks} * (inPlace ? 1 : 2) + schedule.scratchChunks;
  return chunks;
}

Cell& Memory::cell(int rank, Place buffer, uint32_t chunk, uint64_t piece) {
  const Bases& bases = bases_[static_cast<size_t>(rank)];
  const uint64_t base = buffer == Place::In ? bases.in : buffer == Place::Out ? bases.out : bases.scratch;
  return cells_[base + chunk * pieces_ + piece];
}

bool Memory::alias(Place a, Place b) const {
  return a == b || (inPlace_ && a != Place::Scratch && b != Place::Scratch);
}

}  // namespace topoccl
