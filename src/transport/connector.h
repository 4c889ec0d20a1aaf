// How ends of connections are made: what every transport offers the communicator.
//
// A connection is made on first use, without waiting: the producer makes the ring, readers look for it until
// it is there. Owns everything the endpoints point at; they are valid as long as the connector lives.
#pragma once

#include <cstdint>

#include "kernels/endpoint.h"
#include "schedule/step.h"

namespace topoccl {

// What is the same at all ends of one connection.
struct ConnectionPlan {
  const Connection* connection = nullptr;
  uint64_t key = 0;  // equal at all ends, different from all others of this communicator
  RingShape shape;
  Protocol protocol = Protocol::Packet;
};

class Connector {
 public:
  virtual ~Connector() = default;

  // Makes or finds this rank's ends and fills in `endpoint`. False: a peer has not made its end yet, call
  // again. Throws Error. Called by one thread at a time.
  virtual bool connect(const ConnectionPlan& plan, Endpoint& endpoint) = 0;

  // "in-process", "shm", ...: how data reaches `peer`.
  virtual const char* transportTo(int peer) const = 0;
};

}  // namespace topoccl
