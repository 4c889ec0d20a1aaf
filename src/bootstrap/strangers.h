// Connections that have proved nothing yet: how many of them a listener keeps, and for how long.
#pragma once

#include <chrono>
#include <cstddef>

namespace topoccl {

inline constexpr std::chrono::seconds kStrangerTime{10};
inline constexpr size_t kMaxAccepts = 4;  // at once: newcomers can speak before later ones push them out

// At most 512 and a quarter of the descriptors that the process may open: its ranks need some too.
size_t strangersLimit();

}  // namespace topoccl
