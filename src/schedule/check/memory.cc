#include "schedule/check/memory.h"

namespace topoccl {

Memory::Memory(const std::vector<Schedule>& schedules, uint64_t pieces, bool inPlace)
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
