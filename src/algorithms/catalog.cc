#include "algorithms/catalog.h"

#include <bit>
#include <climits>

#include "algorithms/words.h"
#include "base/error.h"
#include "base/fork_safety.h"

namespace topoccl {

namespace {

constexpr int kNoLimit = INT_MAX;
// Beyond this the share of ring memory gets too small: a rank of a full mesh has a ring per peer, and slots
// of halving and doubling hold a granule of half the ranks' chunks.
constexpr int kManyRanks = 1024;

struct AlgorithmName {
  const char* name;
  const char* ncclName;
};
constexpr AlgorithmName kAlgorithmNames[kAlgorithms] = {
    {"ring", "ring"}, {"tree", "tree"}, {"mesh_oneshot", ""}, {"mesh_twoshot", ""}, {"halving_doubling", ""}};

struct CollectiveName {
  const char* name;
  const char* ncclName;
};
constexpr CollectiveName kCollectiveNames[kCollectives] = {
    {"all_reduce", "allreduce"}, {"broadcast", "broadcast"},          {"reduce", "reduce"},
    {"all_gather", "allgather"}, {"reduce_scatter", "reducescatter"}, {"gather", "gather"},
    {"scatter", "scatter"},      {"all_to_all", "alltoall"}};

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

const std::vector<AlgorithmRow>& algorithmRows() {
  using A = Algorithm;
  using C = Collective;
  // Never destroyed, as other threads may call while the process exits.
  static const auto* const rows = new std::vector<AlgorithmRow>{
      {C::AllReduce, A::MeshOneShot, kManyRanks, emitMeshOneShotAllReduce, one},
      {C::AllReduce, A::MeshTwoShot, kManyRanks, emitMeshTwoShotAllReduce, all},
      {C::AllReduce, A::Ring, kNoLimit, emitRingAllReduce, one},
      {C::AllReduce, A::Tree, kNoLimit, emitTreeAllReduce, treeNeighbours},
      {C::AllReduce, A::HalvingDoubling, kManyRanks, emitHalvingDoublingAllReduce, rounds},
      {C::Broadcast, A::MeshOneShot, kManyRanks, emitMeshBroadcast, one},
      {C::Broadcast, A::Tree, kNoLimit, emitTreeBroadcast, treeNeighbours},
      {C::Broadcast, A::Ring, kNoLimit, emitRingBroadcast, one},
      {C::Reduce, A::MeshOneShot, kManyRanks, emitMeshReduce, all},
      {C::Reduce, A::Tree, kNoLimit, emitTreeReduce, treeNeighbours},
      {C::Reduce, A::Ring, kNoLimit, emitRingReduce, one},
      {C::AllGather, A::MeshOneShot, kManyRanks, emitMeshAllGather, one},
      {C::AllGather, A::Ring, kNoLimit, emitRingAllGather, one},
      {C::AllGather, A::HalvingDoubling, kManyRanks, emitDoublingAllGather, rounds},
      {C::ReduceScatter, A::MeshOneShot, kManyRanks, emitMeshReduceScatter, all},
      {C::ReduceScatter, A::Ring, kNoLimit, emitRingReduceScatter, one},
      {C::ReduceScatter, A::HalvingDoubling, kManyRanks, emitHalvingReduceScatter, rounds},
      {C::Gather, A::MeshOneShot, kManyRanks, emitMeshGather, all},
      {C::Gather, A::Tree, kManyRanks, emitTreeGather, rounds},
      {C::Scatter, A::MeshOneShot, kManyRanks, emitMeshScatter, all},
      {C::Scatter, A::Tree, kManyRanks, emitTreeScatter, rounds},
      {C::AllToAll, A::MeshOneShot, kManyRanks, emitMeshAllToAll, all},
  };
  return *rows;
}

namespace {

const ForkHook kHook([] { algorithmRows(); });

}  // namespace

const AlgorithmRow& row(Collective collective, Algorithm algorithm) {
  for (const AlgorithmRow& row : algorithmRows())
    if (row.collective == collective && row.algorithm == algorithm) return row;
  throw Error(Code::InternalError,
              concat("no algorithm ", static_cast<int>(algorithm), " for ", name(collective)));
}

uint32_t algorithmsOf(Collective collective) {
  uint32_t bits = 0;
  for (const AlgorithmRow& row : algorithmRows())
    if (row.collective == collective) bits |= 1U << static_cast<unsigned>(row.algorithm);
  return bits;
}

const char* name(Algorithm algorithm) {
  return kAlgorithmNames[static_cast<size_t>(algorithm)].name;
}
const char* ncclName(Algorithm algorithm) {
  return kAlgorithmNames[static_cast<size_t>(algorithm)].ncclName;
}
const char* name(Protocol protocol) {
  return protocol == Protocol::Packet ? "packet" : "bulk";
}
const char* name(Collective collective) {
  return kCollectiveNames[static_cast<size_t>(collective)].name;
}

std::optional<Collective> collectiveNamed(std::string_view name) {
  const std::string text = lower(name);
  for (size_t i = 0; i < kCollectives; ++i)
    if (text == kCollectiveNames[i].name || text == kCollectiveNames[i].ncclName)
      return static_cast<Collective>(i);
  return std::nullopt;
}

std::string collectiveNames() {
  std::string names;
  for (const CollectiveName& each : kCollectiveNames) names += concat(names.empty() ? "" : ", ", each.name);
  return names;
}

std::string algorithmNames(Collective collective) {
  std::string names;
  for (const AlgorithmRow& row : algorithmRows())
    if (row.collective == collective) names += concat(names.empty() ? "" : ", ", name(row.algorithm));
  return names;
}

}  // namespace topoccl
