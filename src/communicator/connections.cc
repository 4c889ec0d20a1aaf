#include "communicator/connections.h"

#include "kernels/mix.h"

namespace topoccl {

namespace {

// What is the same at all ends of a connection and different from all others.
uint64_t keyOf(const Connection& connection, Protocol protocol, const RingShape& shape) {
  uint64_t key = mix(static_cast<uint64_t>(protocol), static_cast<uint64_t>(connection.from));
  key = mix(key, static_cast<uint64_t>(connection.channel));
  key = mix(key, static_cast<uint64_t>(connection.tag));
  key = mix(key, uint64_t{shape.slots} << 32 | shape.slotBytes);
  for (const int reader : connection.readers) key = mix(key, static_cast<uint64_t>(reader));
  return key;
}

}  // namespace

Endpoint* Connections::open(const Connection& connection, Protocol protocol, uint32_t slots,
                            uint32_t slotBytes) {
  const RingShape shape{slots, slotBytes, static_cast<uint32_t>(connection.readers.size())};
  const uint64_t key = keyOf(connection, protocol, shape);
  const auto found = open_.find(key);
  if (found != open_.end()) return found->second.get();
  auto endpoint = std::make_unique<Endpoint>();
  if (!connector_->connect({&connection, key, shape, protocol}, *endpoint)) return nullptr;
  return open_.emplace(key, std::move(endpoint)).first->second.get();
}

}  // namespace topoccl
