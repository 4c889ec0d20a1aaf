// Emitters: pure functions (layout, rank) -> schedule of that rank. See docs/algorithms.md for the steps.
#pragma once

#include "schedule/layout.h"
#include "schedule/step.h"

namespace topoccl {

enum class Algorithm { Ring, Tree, MeshOneShot, MeshTwoShot, HalvingDoubling };

// Chunks per channel: ranks. 2 (ranks - 1) steps; bandwidth optimal.
Schedule emitRingAllReduce(const Layout& layout, int rank);

// Double binary tree. Chunks per channel: 2, one per tree.
Schedule emitTreeAllReduce(const Layout& layout, int rank);

// Full mesh, one-shot: every rank broadcasts its buffer and reduces all of them. Chunks per channel: 1.
Schedule emitMeshOneShotAllReduce(const Layout& layout, int rank);

// Full mesh, two-shot: rank c reduces chunk c, then broadcasts it. Chunks per channel: ranks.
Schedule emitMeshTwoShotAllReduce(const Layout& layout, int rank);

// Recursive halving (reduce-scatter), then doubling (all-gather); other rank counts than powers of two
// fold the surplus ranks in first. Chunks per channel: the largest power of two <= ranks.
Schedule emitHalvingDoublingAllReduce(const Layout& layout, int rank);

}  // namespace topoccl
