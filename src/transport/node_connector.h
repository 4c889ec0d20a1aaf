// Connections between ranks of one node: rings in node memory that all ends map.
//
// Between ranks of one process (in-process) slots may also refer to the callers' memory; between processes
// (shm) data passes through the slots.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "transport/connector.h"
#include "transport/node_memory.h"

namespace topoccl {

// Where a rank lives, as this rank sees it.
struct RankPlace {
  int nodeRank = -1;  // -1: on another node
  bool sameProcess = false;
};

class NodeConnector : public Connector {
 public:
  // places[r] is rank r's place; places[rank].nodeRank >= 0.
  NodeConnector(std::shared_ptr<NodeMemory> memory, int rank, std::vector<RankPlace> places);

  bool connect(const ConnectionPlan& plan, Endpoint& endpoint) override;
  const char* transportTo(int peer) const override;

 private:
  Doorbell* bell(int rank) const;
  void setBells(Endpoint& endpoint, const Connection& connection);

  std::shared_ptr<NodeMemory> memory_;
  int rank_;
  std::vector<RankPlace> places_;
  std::deque<std::vector<Doorbell*>> bells_;  // what endpoints point at
};

}  // namespace topoccl
