// All emitters, for tests that run over them.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "algorithms/catalog.h"
#include "schedule/goal.h"
#include "schedule/layout.h"

namespace topoccl {

using Emitter = AlgorithmRow;

inline std::string nameOf(const Emitter& emitter) {
  return std::string(name(emitter.collective)) + "_" + name(emitter.algorithm);
}

inline std::ostream& operator<<(std::ostream& out, const Emitter& emitter) {
  return out << nameOf(emitter);
}

inline std::string parameterName(const testing::TestParamInfo<Emitter>& info) {
  return nameOf(info.param);
}

inline const Emitter& allReduce(Algorithm algorithm) {
  return row(Collective::AllReduce, algorithm);
}

inline Goal goalOf(const Emitter& emitter, int ranks, int root = 0) {
  return goalOf(emitter.collective, ranks, root);
}

// The roots worth trying: the ends and the middle, one where there is no root.
inline std::vector<int> rootsOf(const Emitter& emitter, int ranks) {
  if (!hasRoot(emitter.collective) || ranks == 1) return {0};
  if (ranks == 2) return {0, 1};
  return {0, ranks / 2, ranks - 1};
}

inline std::vector<Schedule> emitAll(const Emitter& emitter, const Layout& layout, int root = 0) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < layout.ranks; ++rank) schedules.push_back(emitter.emit(layout, rank, root));
  return schedules;
}

inline std::vector<Schedule> emitAll(const Emitter& emitter, int ranks, int channels = 1, int root = 0) {
  return emitAll(emitter, flatLayout(ranks, channels), root);
}

}  // namespace topoccl
