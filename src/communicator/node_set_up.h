// From a bootstrap to shared memory: who is where, do all agree, and the node's memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/settings.h"
#include "bootstrap/bootstrap.h"
#include "communicator/communicator.h"
#include "transport/node_connector.h"
#include "transport/node_memory.h"

namespace topoccl {

inline constexpr const char* kGoneText = "its process is gone without a goodbye";

struct NodeSetUp {
  std::shared_ptr<NodeMemory> memory;
  std::vector<RankPlace> places;  // per rank
  std::vector<int> nodeRanks;     // ranks of this node, ascending: nodeRanks[node rank] = rank
  int cores = 0;                  // that the node's ranks may use, all together; 0 = unknown

  int nodeRankOf(int rank) const;  // -1: on another node, or there is none
  // Whether a rank of this node has destroyed its communicator.
  bool hasLeft(int rank) const;
  // Whether its process has ended without a goodbye. A system call.
  bool isGone(int rank) const;
  // One of which that is so, of `most` ranks of this node from the `first`-th on, in a circle; -1 if all are
  // there.
  int gone(size_t first, size_t most) const;
};

// Collective. `tableHash` is the hash of this rank's range table. Throws Error: ranks on different hosts,
// settings or tables that must agree and don't (naming ranks and values), no shared memory.
NodeSetUp setUpNode(Bootstrap& bootstrap, const Settings& settings, const CommConfig& config,
                    uint64_t tableHash, const std::atomic<bool>* abort);

}  // namespace topoccl
