// The emitters by name, for tests that run over all of them.
#pragma once

#include <ostream>
#include <vector>

#include "algorithms/algorithms.h"
#include "schedule/layout.h"

namespace topoccl {

struct Emitter {
  const char* name;
  Schedule (*emit)(const Layout&, int rank);
};

inline std::ostream& operator<<(std::ostream& out, const Emitter& emitter) {
  return out << emitter.name;
}

inline constexpr Emitter kEmitters[] = {
    {"Ring", emitRingAllReduce},
    {"Tree", emitTreeAllReduce},
    {"MeshOneShot", emitMeshOneShotAllReduce},
    {"MeshTwoShot", emitMeshTwoShotAllReduce},
    {"HalvingDoubling", emitHalvingDoublingAllReduce},
};

inline std::vector<Schedule> emitAll(const Emitter& emitter, const Layout& layout) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < layout.ranks; ++rank) schedules.push_back(emitter.emit(layout, rank));
  return schedules;
}

inline std::vector<Schedule> emitAll(const Emitter& emitter, int ranks, int channels = 1) {
  return emitAll(emitter, flatLayout(ranks, channels));
}

}  // namespace topoccl
