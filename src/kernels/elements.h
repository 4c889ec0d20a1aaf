// Element types as the kernels see them, one row each: `Stored` in memory, `Wide` while being reduced.
// A row whose types differ gives widen() (exact) and narrow() (rounds once, to nearest even).
//
// Every NaN that a reduction yields is one and the same quiet NaN. Which operand's payload survives an
// addition is the compiler's choice, and ranks that cut a buffer differently must still agree on every bit.
#pragma once

#include <cstdint>

#include "base/portable.h"

namespace topoccl {

// For copies: bits of an element's size, never computed with.
template <class Word>
struct Raw {
  using Stored = Word;
  using Wide = Word;
  static constexpr bool kFloating = false;
};
using Byte = Raw<uint8_t>;

struct Int32 {
  using Stored = int32_t;
  using Wide = int32_t;
  static constexpr bool kFloating = false;
};

struct Float32 {
  using Stored = float;
  using Wide = float;
  static constexpr bool kFloating = true;
};

struct Float64 {
  using Stored = double;
  using Wide = double;
  static constexpr bool kFloating = true;
};

// The bits of the one quiet NaN.
TOPOCCL_HOST_DEVICE constexpr uint32_t quietNanBits(float) {
  return 0x7fc00000u;
}
TOPOCCL_HOST_DEVICE constexpr uint64_t quietNanBits(double) {
  return 0x7ff8000000000000u;
}

// The upper half of a float32: same exponents, 8 bits of significand.
struct Bfloat16 {
  using Stored = uint16_t;
  using Wide = float;
  static constexpr bool kFloating = true;

  // Both in terms of a float32's bits. Adding half a unit less one, plus the lowest bit kept, carries into
  // the kept half exactly when the nearest (ties: even) value lies above; a carry out of the largest finite
  // value makes infinity.
  TOPOCCL_HOST_DEVICE static constexpr uint32_t widenBits(uint16_t stored) { return uint32_t{stored} << 16; }
  TOPOCCL_HOST_DEVICE static constexpr uint16_t narrowBits(uint32_t wide) {
    if ((wide & 0x7fffffffu) > 0x7f800000u) return uint16_t{quietNanBits(float{}) >> 16};
    return static_cast<uint16_t>((wide + 0x7fffu + ((wide >> 16) & 1u)) >> 16);
  }
};

}  // namespace topoccl
