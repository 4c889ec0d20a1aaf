// This library's own version: major * 10000 + minor * 100 + patch of the CMake project (a test compares).
// Ranks of one communicator must have the same.
#pragma once

#include <cstdint>

namespace topoccl {

inline constexpr uint32_t kLibraryVersion = 100;

}  // namespace topoccl
