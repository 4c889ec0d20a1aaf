// The 128 bytes that ranks of one communicator share: where the root listens, and the secret that proves
// membership. Whoever holds an id can join: hand it out of band over a channel you trust.
//
//   bytes  0-7    "TOPOCCL" and the format's version
//          8      address family (4 or 6)
//          9      1 if made from NCCL_COMM_ID
//         10-11   port
//         12-27   address (IPv4: the first 4 bytes)
//         28-43   secret
//         44-95   zero
//         96-127  hash of the bytes before
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/crypto.h"
#include "base/settings.h"
#include "base/socket.h"

namespace topoccl {

struct UniqueId {
  std::array<char, 128> bytes{};

  bool operator==(const UniqueId&) const = default;
};

using Secret = std::array<uint8_t, 16>;

// What an id says.
struct Rendezvous {
  SocketAddress address;
  Secret secret{};
  bool fromCommId = false;  // rank 0 starts the root when it connects
};

UniqueId encodeUniqueId(const Rendezvous& rendezvous);

// Throws InvalidArgument unless the bytes are an id of this library's format.
Rendezvous decodeUniqueId(const UniqueId& id);

// The id that every process with the same NCCL_COMM_ID and TOPOCCL_SECRET derives. Without TOPOCCL_SECRET its
// secret is a hash of "host:port": it keeps strays out, not an attacker who can guess that.
UniqueId uniqueIdFromCommId(const Settings& settings);

// The key of all authentication under an id.
Bytes32 sessionKey(const Secret& secret);

}  // namespace topoccl
