// What a collective promises: which contributions every rank must find in `out`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace topoccl {

// An out chunk must be the sum of in chunk `chunk` of ranks [firstRank, firstRank + ranks), each exactly
// once. With one rank it is a copy; with none, what the chunk holds does not matter.
struct Wanted {
  int firstRank = 0;
  int ranks = 0;
  uint32_t chunk = 0;

  auto operator<=>(const Wanted&) const = default;
};

// `final`: the results have had the operator's last action (integer average's division), exactly once.
struct Goal {
  std::string name;
  bool final = false;
  std::function<Wanted(int rank, uint32_t outChunk)> wanted;
};

// Out chunk c of every rank is the sum of every rank's in chunk c.
Goal allReduceGoal(int ranks);

}  // namespace topoccl
