// The full fence between a store and a later load, when one side of the pair runs all the time and the other
// hardly ever.
//
// A publisher stores a slot and then looks whether anybody sleeps; a sleeper says that it sleeps and then
// looks for slots. Each must see the other's store. A full fence on both sides does it, but makes every
// publish wait until its cache line has come from the other core: measured, that doubled the time of an
// 8-byte all-reduce. So, where the system can, the sleeper fences for both: it has every core of every
// process that takes part run a fence (membarrier), and publishers get by with keeping the compiler in order.
// The same holds between ranks that touch each other's buffers and one that poisons the communicator.
//
// All ranks of a node must use the same kind. Asymmetric pays when sleeping is rare, that is when ranks have
// a core each.
#pragma once

#include <cstdint>

#include "kernels/sync.h"

namespace topoccl {

enum class Fencing : uint8_t {
  Symmetric,   // a full fence on both sides
  Asymmetric,  // none on the side that runs often; fenceEverybody() on the other
};

// Registers this process for asymmetric fencing. False where the system can't.
bool registerForFencing();

// Returns when every running thread of every registered process has passed a full fence.
void fenceEverybody();

// The side that runs all the time.
TOPOCCL_HOST_DEVICE inline void frequentFence([[maybe_unused]] Fencing fencing) {
#if defined(__CUDA_ARCH__)
  fullFence();
#else
  if (fencing == Fencing::Symmetric)
    fullFence();
  else
    __asm__ __volatile__("" ::: "memory");
#endif
}

// The side that hardly ever runs.
inline void rareFence(Fencing fencing) {
  fullFence();
  if (fencing == Fencing::Asymmetric) fenceEverybody();
}

}  // namespace topoccl
