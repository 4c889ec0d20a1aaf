// How much memory this host has to give and this process took. Bytes.
#pragma once

#include <cstdint>

namespace topoccl::bench {

// What can be allocated without swapping: MemAvailable, or less where a control group allows less.
uint64_t availableMemory();

// The largest resident size of this process so far.
double peakMemory();

}  // namespace topoccl::bench
