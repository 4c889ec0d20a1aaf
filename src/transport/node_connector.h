// Connections between ranks of one node: rings in node memory that all ends map.
//
// Between ranks of one process (in-process) slots may also refer to the callers' memory. Between processes
// (shm) data passes through the slots, unless all readers can read the producer's memory by address.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/peer_memory.h"
#include "transport/connector.h"
#include "transport/node_memory.h"

namespace topoccl {

// Where a rank lives, as this rank sees it.
struct RankPlace {
  int nodeRank = -1;  // -1: on another node
  bool sameProcess = false;
};

// When a rank reads large messages from the memory of other processes, if it may (base/peer_memory.h).
enum class Fetching : uint8_t { Never, WhereQuicker, Always };

class NodeConnector : public Connector {
 public:
  // places[r] is rank r's place; places[rank].nodeRank >= 0.
  NodeConnector(std::shared_ptr<NodeMemory> memory, int rank, std::vector<RankPlace> places,
                Fetching fetching = Fetching::WhereQuicker);

  bool connect(const ConnectionPlan& plan, Endpoint& endpoint) override;
  const char* transportTo(int peer) const override;

 private:
  const PeerMemory* memoryOf(int producer, const MemoryOwner& owner);
  Doorbell* bell(int rank) const;
  void setReader(Endpoint& endpoint, const ConnectionPlan& plan, const RingView& ring, uint32_t reader);
  void setBells(Endpoint& endpoint, const Connection& connection);

  std::shared_ptr<NodeMemory> memory_;
  int rank_;
  std::vector<RankPlace> places_;
  Fetching fetching_;
  std::map<int, std::optional<PeerMemory>> memories_;  // by rank; nothing where it can't be read
  std::deque<std::vector<Doorbell*>> bells_;           // what endpoints point at
};

}  // namespace topoccl
