#include "algorithms/catalog.h"

#include <bit>
#include <climits>

#include "base/error.h"

namespace topoccl {

namespace {

constexpr int kNoLimit = INT_MAX;
// Beyond this the share of ring memory gets too small: a rank of a two-shot mesh has a ring per peer, and
// slots of halving and doubling hold a granule of half the ranks' chunks.
constexpr int kManyRanks = 1024;

uint32_t one(int) {
  return 1;
}
uint32_t all(int ranks) {
  return static_cast<uint32_t>(ranks);
}
// Two trees, in each a parent and two children.
uint32_t treeNeighbours(int) {
  return 6;
}
// One partner per round of halving, one per round of doubling, and the surplus rank.
uint32_t rounds(int ranks) {
  return 2 * static_cast<uint32_t>(std::bit_width(static_cast<unsigned>(ranks))) + 2;
}

}  // namespace

const std::vector<AlgorithmRow>& allReduceAlgorithms() {
  static const std::vector<AlgorithmRow> kRows = {
      {Algorithm::MeshOneShot, "mesh_oneshot", "", kManyRanks, emitMeshOneShotAllReduce, one},
      {Algorithm::MeshTwoShot, "mesh_twoshot", "", kManyRanks, emitMeshTwoShotAllReduce, all},
      {Algorithm::Ring, "ring", "ring", kNoLimit, emitRingAllReduce, one},
      {Algorithm::Tree, "tree", "tree", kNoLimit, emitTreeAllReduce, treeNeighbours},
      {Algorithm::HalvingDoubling, "halving_doubling", "", kManyRanks, emitHalvingDoublingAllReduce, rounds},
  };
  return kRows;
}

const AlgorithmRow& row(Algorithm algorithm) {
  for (const AlgorithmRow& row : allReduceAlgorithms())
    if (row.algorithm == algorithm) return row;
  throw Error(Code::InternalError, concat("no algorithm ", static_cast<int>(algorithm)));
}

const char* name(Algorithm algorithm) {
  return row(algorithm).name;
}
const char* name(Protocol protocol) {
  return protocol == Protocol::Packet ? "packet" : "bulk";
}
const char* name(Collective) {
  return "all_reduce";
}

}  // namespace topoccl
