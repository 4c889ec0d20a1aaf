// A transport for tests: any other transport, with a pump in front of each reader that delays, drops or
// corrupts slots on demand. It never reorders them: no transport may.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "transport/connector.h"
#include "transport/pump.h"

namespace topoccl {

enum class Fault : uint8_t {
  None,
  Drop,            // the slot never arrives
  CorruptHeader,   // another chunk number arrives
  CorruptPayload,  // one bit of the data arrives flipped
};

// What happens to one slot on its way.
struct SlotFate {
  std::chrono::microseconds delay{0};
  Fault fault = Fault::None;
};

// Decides the fate of message `message` (from 0) of a connection. Called from a thread of the transport.
using FatePolicy = std::function<SlotFate(const Connection&, uint64_t message)>;

class FaultyConnector : public Connector {
 public:
  // `doorbell` is that of the rank whose connections these are: deliveries ring it.
  FaultyConnector(std::unique_ptr<Connector> inner, int rank, Doorbell* doorbell, FatePolicy policy);
  ~FaultyConnector() override;

  bool connect(const ConnectionPlan& plan, Endpoint& endpoint) override;
  const char* transportTo(int peer) const override { return inner_->transportTo(peer); }

 private:
  struct Line;

  void carry(Line& line);

  std::unique_ptr<Connector> inner_;
  int rank_;
  Doorbell* bells_[1];
  FatePolicy policy_;
  uint32_t stop_ = 0;  // set once, for all pumps
  std::vector<std::unique_ptr<Line>> lines_;
};

}  // namespace topoccl
