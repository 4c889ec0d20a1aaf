// A 64-bit hash step for fingerprints and keys: equal inputs give equal outputs on every machine.
#pragma once

#include <cstdint>

#include "base/portable.h"

namespace topoccl {

// The finalizer of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
TOPOCCL_HOST_DEVICE constexpr uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

// Takes one more value into a hash; order matters.
TOPOCCL_HOST_DEVICE constexpr uint64_t mix(uint64_t hash, uint64_t value) {
  return mix(hash ^ mix(value));
}

}  // namespace topoccl
