// Emitters: pure functions (layout, rank, root) -> schedule of that rank. See docs/algorithms.md for the
// steps, schedule/goal.h for what buffers and blocks a collective has. Collectives without a root ignore it.
#pragma once

#include "schedule/layout.h"
#include "schedule/step.h"

namespace topoccl {

enum class Algorithm { Ring, Tree, MeshOneShot, MeshTwoShot, HalvingDoubling };
inline constexpr int kAlgorithms = 5;

// Ring (ring.cc). Bandwidth optimal where every rank has one way in and one out.
Schedule emitRingAllReduce(const Layout& layout, int rank, int root = 0);
Schedule emitRingAllGather(const Layout& layout, int rank, int root = 0);
Schedule emitRingReduceScatter(const Layout& layout, int rank, int root = 0);
Schedule emitRingBroadcast(const Layout& layout, int rank, int root);  // a chain from the root on ...
Schedule emitRingReduce(const Layout& layout, int rank, int root);     // ... or up to it

// Double binary tree (tree.cc), re-rooted where there is a root.
Schedule emitTreeAllReduce(const Layout& layout, int rank, int root = 0);
Schedule emitTreeBroadcast(const Layout& layout, int rank, int root);
Schedule emitTreeReduce(const Layout& layout, int rank, int root);

// Binomial tree (binomial.cc): blocks travel in bundles, log2(ranks) steps.
Schedule emitTreeGather(const Layout& layout, int rank, int root);
Schedule emitTreeScatter(const Layout& layout, int rank, int root);

// Full mesh (mesh.cc). One-shot: every rank broadcasts its buffer and reduces all of them. Two-shot: rank c
// reduces chunk c, then broadcasts it.
Schedule emitMeshOneShotAllReduce(const Layout& layout, int rank, int root = 0);
Schedule emitMeshTwoShotAllReduce(const Layout& layout, int rank, int root = 0);

// Full mesh (direct_exchange.cc): everything goes straight from who has it to who wants it.
Schedule emitMeshAllGather(const Layout& layout, int rank, int root = 0);
Schedule emitMeshReduceScatter(const Layout& layout, int rank, int root = 0);
Schedule emitMeshBroadcast(const Layout& layout, int rank, int root);
Schedule emitMeshReduce(const Layout& layout, int rank, int root);
Schedule emitMeshGather(const Layout& layout, int rank, int root);
Schedule emitMeshScatter(const Layout& layout, int rank, int root);
Schedule emitMeshAllToAll(const Layout& layout, int rank, int root = 0);

// Recursive halving (reduce-scatter), then doubling (all-gather) (halving_doubling.cc); other rank counts
// than powers of two fold the surplus ranks in first.
Schedule emitHalvingDoublingAllReduce(const Layout& layout, int rank, int root = 0);

// One half of that for any number of ranks (doubling.cc): distances double, log2(ranks) rounds.
Schedule emitDoublingAllGather(const Layout& layout, int rank, int root = 0);
Schedule emitHalvingReduceScatter(const Layout& layout, int rank, int root = 0);

}  // namespace topoccl
