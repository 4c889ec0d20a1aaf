// The threads that work on one call together. Cooperative code asks its Group and nobody else who it is.
#pragma once

#include <concepts>
#include <cstdint>

#include "base/portable.h"

namespace topoccl {

// rank() in [0, size()); sync() returns once all threads of the group called it, and what each wrote before
// is visible to all after.
template <class T>
concept Group = requires(const T& group) {
  { group.rank() } -> std::convertible_to<uint64_t>;
  { group.size() } -> std::convertible_to<uint64_t>;
  group.sync();
};

// A thread by itself: what a host rank is.
struct SoloGroup {
  TOPOCCL_HOST_DEVICE constexpr uint64_t rank() const { return 0; }
  TOPOCCL_HOST_DEVICE constexpr uint64_t size() const { return 1; }
  TOPOCCL_HOST_DEVICE constexpr void sync() const {}
};

}  // namespace topoccl
