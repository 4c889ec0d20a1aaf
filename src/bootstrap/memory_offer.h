// What a node's leader tells everybody before receivers come for its memory (local_exchange.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace topoccl {

struct MemoryOffer {
  std::string problem;  // why there is no file; empty if there is one
  std::string name;     // of the unix socket
  uint64_t bytes = 0;
};

std::string encode(const MemoryOffer& offer);

// Takes any bytes; nothing for what is malformed.
std::optional<MemoryOffer> decodeMemoryOffer(std::string_view bytes);

}  // namespace topoccl
