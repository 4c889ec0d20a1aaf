// Limits of the process, in words: an error that a limit causes names it, its value and what is needed.
#pragma once

#include <cstdint>
#include <string>

namespace topoccl {

// More than any process has: x86-64 gives programs 2^56 at most, arm64 2^52.
inline constexpr uint64_t kMostMemoryBytes = uint64_t{1} << 56;

// What limit a call that failed with `error` (an errno value) may have met, as the end of a message: "; this
// process may have 16 descriptors open (ulimit -n), ...". Empty where there is none.
std::string limitBehind(int error);

// The same for a thread that could not be started.
std::string limitOfThreads();

}  // namespace topoccl
