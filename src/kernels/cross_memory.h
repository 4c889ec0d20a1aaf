// Large messages between processes: what their two ends do beside moving data.
#pragma once

#include <cstdint>

#include "kernels/endpoint.h"

namespace topoccl {

// The line of a slot with a message of `bytes` by which its reader finds out how far the producer is: in the
// middle, where no prefetcher has been. It exists where the message, or a reference to it, is large.
TOPOCCL_HOST_DEVICE inline uint64_t* distanceLine(SlotHeader& header, uint64_t bytes) {
  return reinterpret_cast<uint64_t*>(RingView::data(header) + bytes / 2 / kLineBytes * kLineBytes);
}

// The reader of `endpoint` looks, and says how it wants the next ones.
TOPOCCL_HOST_DEVICE inline void lookHowFar([[maybe_unused]] Endpoint& endpoint,
                                           [[maybe_unused]] uint64_t bytes) {
#if !defined(__CUDA_ARCH__)
  endpoint.distance.look(distanceLine(endpoint.reader.header(), bytes));
  endpoint.reader.fetch(endpoint.distance.far());
#endif
}

}  // namespace topoccl
