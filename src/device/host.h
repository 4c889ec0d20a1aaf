// The host as a device: which cores a thread may use, and memory for buffers. Any thread may call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace topoccl {

// Cores in the calling thread's affinity mask: bit i % 64 of word i / 64 is core i. Empty when the system
// does not say.
std::vector<uint64_t> allowedCores();

// Zeroed, page-aligned memory of at least `bytes` (> 0). Throws SystemError naming the size.
void* allocateHost(size_t bytes);

// Throws InvalidArgument unless `memory` came from allocateHost and was not freed yet.
void freeHost(void* memory);

}  // namespace topoccl
