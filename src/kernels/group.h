// Who does a step together: one host thread, or the threads of a block. Cooperative code takes a Group and
// never reads a thread index itself.
//
//   rank()   this thread's index in the group          size()   how many there are
//   sync()   returns when all are there; what they wrote before is visible after
#pragma once

#include <cstdint>

#include "base/portable.h"

namespace topoccl {

// One host thread on its own.
struct SingleThread {
  TOPOCCL_HOST_DEVICE static constexpr uint32_t rank() { return 0; }
  TOPOCCL_HOST_DEVICE static constexpr uint32_t size() { return 1; }
  TOPOCCL_HOST_DEVICE static void sync() {}
};

}  // namespace topoccl
