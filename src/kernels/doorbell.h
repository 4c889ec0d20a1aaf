// How a rank that sleeps is woken, and what a waiting rank tells its peers: one line per rank in the memory
// that all ranks of a node share.
//
//   sleeper:    sleeping = 1; full fence; look once more; futex wait on `bell`       (executor/waiter)
//   publisher:  publish or free a slot; full fence; if sleeping: ++bell, futex wake
//
// The two fences make it impossible that the sleeper misses the slot and the publisher misses the sleeper.
// To spare publishers theirs, by having the sleeper fence for all (membarrier), was tried: within 3 % at 8
// bytes between two cores, 8 % slower at 4 KiB.
#pragma once

#include <cstdint>

#include "kernels/sync.h"

namespace topoccl {

struct alignas(64) Doorbell {
  uint32_t bell;
  uint32_t sleeping;
  int32_t core;  // where the rank last began to wait, plus 1; 0 = unknown
};

// Adds one to the bell and wakes whoever sleeps on it (a system call).
void wake(Doorbell& doorbell);

// After a publish or free that the owner of the doorbell may be waiting for.
inline void ring(Doorbell& doorbell) {
  if (loadRelaxed(&doorbell.sleeping) != 0) wake(doorbell);
}

}  // namespace topoccl
