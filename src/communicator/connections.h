// This rank's ends of its connections. Schedules that run one after the other share them: a broadcast from
// another root, or another collective on the same ring, goes on where the last one stopped.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "transport/connector.h"

namespace topoccl {

// Tag of the connections of point-to-point calls, which run at the same time as collectives.
inline constexpr int kPeerTag = 3;

class Connections {
 public:
  explicit Connections(std::unique_ptr<Connector> connector) : connector_(std::move(connector)) {}

  // The endpoint of a connection with such slots; nullptr until its producer has made the ring. Throws Error.
  Endpoint* open(const Connection& connection, Protocol protocol, uint32_t slots, uint32_t slotBytes);

  const char* transportTo(int peer) const { return connector_->transportTo(peer); }

 private:
  std::unique_ptr<Connector> connector_;
  std::map<uint64_t, std::unique_ptr<Endpoint>> open_;  // by the key that both ends compute
};

}  // namespace topoccl
