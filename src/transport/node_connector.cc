#include "transport/node_connector.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace topoccl {

NodeConnector::NodeConnector(std::shared_ptr<NodeMemory> memory, int rank, std::vector<RankPlace> places,
                             Fetching fetching)
    : memory_(std::move(memory)), rank_(rank), places_(std::move(places)), fetching_(fetching) {}

bool NodeConnector::connect(const ConnectionPlan& plan, Endpoint& endpoint) {
  const Connection& connection = *plan.connection;
  const int producer = places_[static_cast<size_t>(connection.from)].nodeRank;
  if (producer < 0)
    throw Error(Code::InternalError, concat("rank ", connection.from, " is not on the node of rank ", rank_));

  RingView ring;
  if (connection.from == rank_) {
    ring = memory_->makeRing(producer, plan.key, plan.shape);
    endpoint.writer = SlotWriter(ring, plan.protocol);
  } else if (!memory_->findRing(producer, plan.key, plan.shape, ring)) {
    return false;
  }
  endpoint.direct = places_[static_cast<size_t>(connection.from)].sameProcess &&
                    std::all_of(connection.readers.begin(), connection.readers.end(),
                                [&](int rank) { return places_[static_cast<size_t>(rank)].sameProcess; });
  const auto reader = std::find(connection.readers.begin(), connection.readers.end(), rank_);
  if (reader != connection.readers.end())
    setReader(endpoint, plan, ring, static_cast<uint32_t>(reader - connection.readers.begin()));
  setBells(endpoint, connection);
  if (connection.from == rank_) {
    // Readers may sleep because they found no ring. Nobody rings them otherwise before data comes.
    fullFence();
    ringBells(endpoint);
  }
  return true;
}

void NodeConnector::setReader(Endpoint& endpoint, const ConnectionPlan& plan, const RingView& ring,
                              uint32_t reader) {
  endpoint.reader = SlotReader(ring, plan.protocol, reader);
  // Of one reader: it may fetch into the slot, where it doesn't just store.
  if (endpoint.direct || fetching_ == Fetching::Never || plan.shape.readers != 1) return;
  endpoint.memory = memoryOf(plan.connection->from, ring.description().producer);
  if (endpoint.memory == nullptr || fetching_ != Fetching::Always) return;
  endpoint.distance.assumeFar();
  endpoint.reader.fetch(true);
}

// The memory of rank `producer`, or nullptr where it can't be read.
const PeerMemory* NodeConnector::memoryOf(int producer, const MemoryOwner& owner) {
  const auto known = memories_.find(producer);
  const auto& memory = known != memories_.end()
                           ? known->second
                           : memories_.emplace(producer, PeerMemory::attach(owner)).first->second;
  return memory ? &*memory : nullptr;
}

Doorbell* NodeConnector::bell(int rank) const {
  return &memory_->board().doorbell(places_[static_cast<size_t>(rank)].nodeRank);
}

void NodeConnector::setBells(Endpoint& endpoint, const Connection& connection) {
  std::vector<Doorbell*> bells;
  if (connection.from != rank_) bells.push_back(bell(connection.from));
  if (connection.from == rank_)
    for (const int reader : connection.readers)
      if (reader != rank_) bells.push_back(bell(reader));
  bells_.push_back(std::move(bells));
  endpoint.bells = bells_.back().data();
  endpoint.bellCount = static_cast<uint32_t>(bells_.back().size());
}

const char* NodeConnector::transportTo(int peer) const {
  return places_[static_cast<size_t>(peer)].sameProcess ? "in-process" : "shm";
}

}  // namespace topoccl
