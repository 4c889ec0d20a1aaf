// What the memory machine is told about a call, and what it says when it refuses to go on.
#pragma once

#include <cstdint>

#include "kernels/scale_value.h"
#include "kernels/slot_ring.h"
#include "schedule/chunk_map.h"

namespace topoccl {

// Between ranks of one address space: a rank raises `touching` while it reads or writes another rank's
// buffers, after checking that the communicator isn't poisoned; whoever poisons it waits until nobody
// touches. Either the toucher sees the poison or the poisoner sees the touch: both fence in between.
struct DirectGuard {
  uint32_t* touching = nullptr;
  const uint64_t* poison = nullptr;
};

// What a call is about, for one rank.
struct CallContext {
  const unsigned char* in = nullptr;
  unsigned char* out = nullptr;
  unsigned char* scratch = nullptr;  // chunk i lies where chunk i of the buffers does
  ChunkMap map;
  uint32_t elementBytes = 1;
  uint64_t call = 0;    // what every slot of this call must carry
  bool scaled = false;  // multiply by `scale` when reading `in`
  ScaleValue scale;
  uint32_t divisor = 1;                  // applied by final steps
  bool streamed = false;                 // the result won't be read from cache soon: store it past the caches
  uint64_t referenceBytes = UINT64_MAX;  // messages of at least that many bytes may go by reference ...
  uint64_t offerBytes = UINT64_MAX;      // ... or to an offered destination
  uint64_t attachBytes = UINT64_MAX;     // ... or by reference to readers in other processes
  DirectGuard guard;
};

// Why perform() refused: the slot's description isn't the expected one, or the communicator was poisoned, or
// what a slot refers to couldn't be read.
struct MachineFailure {
  bool poisoned = false;
  int readError = 0;  // an errno
  uint32_t connection = 0;
  SlotHeader found{};
  uint32_t expectedChunk = 0;
  uint32_t expectedBytes = 0;
};

}  // namespace topoccl
