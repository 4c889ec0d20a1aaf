// One end of a connection as the memory machine uses it: the view of the ring, whom to wake, and what the
// machine remembers about messages in flight. Made by the transport when the connection is made, then used
// by one driver at a time.
#pragma once

#include <cstdint>

#include "base/peer_memory.h"
#include "kernels/core_distance.h"
#include "kernels/doorbell.h"
#include "kernels/slot_ring.h"

namespace topoccl {

inline constexpr uint32_t kNoOffer = UINT32_MAX;

struct Endpoint {
  SlotWriter writer;  // used when this rank is the producer
  SlotReader reader;  // used when this rank is a reader
  // All ends live in one address space: slots may refer to the caller's memory and readers may offer theirs.
  bool direct = false;
  // Reader, where they don't: how it reads what slots refer to in the producer's memory; nullptr if it can't.
  const PeerMemory* memory = nullptr;
  CoreDistance distance;

  // Whom a publish (or free) may wake: the readers (or the producer). nullptr entries never sleep.
  Doorbell* const* bells = nullptr;
  uint32_t bellCount = 0;

  // Producer: messages before this one may carry a reference, and the work ends when they are freed; 0: none
  // has since the last end.
  uint64_t referencedUpTo = 0;

  // Reader: per receiving step of one piece, the chunk it only stores (offered ahead), or kNoOffer.
  const uint32_t* offerChunks = nullptr;
  uint32_t offerCount = 0;
  uint32_t offerIndex = 0;  // next entry to offer ...
  uint64_t offerPiece = 0;  // ... of this piece ...
  uint64_t offered = 0;     // ... which is this message
};

// After a publish or free on `endpoint`, and a full fence: wakes whom it may concern.
inline void ringBells(const Endpoint& endpoint) {
  for (uint32_t i = 0; i < endpoint.bellCount; ++i) ring(*endpoint.bells[i]);
}

}  // namespace topoccl
