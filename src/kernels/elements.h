// Element types as the kernels see them, one row each: `Stored` in memory, `Wide` while being reduced.
// A row whose types differ gives widen() (exact) and narrow() (rounds once, to nearest even).
//
// Every NaN that a reduction yields is one and the same quiet NaN. Which operand's payload survives an
// addition is the compiler's choice, and ranks that cut a buffer differently must still agree on every bit.
#pragma once

#include <cstdint>

#include "base/portable.h"
#include "kernels/types.h"

namespace topoccl {

// For copies: bits of an element's size, never computed with.
template <class Word>
struct Raw {
  using Stored = Word;
  using Wide = Word;
  static constexpr bool kFloating = false;
};
using Byte = Raw<uint8_t>;

// A type that is stored as it is computed with.
template <class Number, bool kFloating_>
struct Plain {
  using Stored = Number;
  using Wide = Number;
  static constexpr bool kFloating = kFloating_;
};
using Int8 = Plain<int8_t, false>;
using Uint8 = Plain<uint8_t, false>;
using Int32 = Plain<int32_t, false>;
using Uint32 = Plain<uint32_t, false>;
using Int64 = Plain<int64_t, false>;
using Uint64 = Plain<uint64_t, false>;
using Float32 = Plain<float, true>;
using Float64 = Plain<double, true>;

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

// Floating types whose exponent has fewer bits than a float32's. `kInfinity` and `kNan` are magnitudes (all
// bits but the sign); a type without infinity gives its NaN for both, and the magnitudes below are numbers.
// What rounds beyond the largest number becomes `kOverflow`.
template <class Stored_, int kExponentBits, Stored_ kInfinity_, Stored_ kNan_, Stored_ kOverflow_>
struct SmallFloat {
  using Stored = Stored_;
  using Wide = float;
  static constexpr bool kFloating = true;

  static constexpr int kBits = 8 * sizeof(Stored);
  static constexpr int kDroppedBits = 23 - (kBits - 1 - kExponentBits);  // of a float32's significand
  static constexpr uint32_t kMagnitude = (1u << (kBits - 1)) - 1;
  static constexpr uint32_t kInfinity = kInfinity_;
  static constexpr uint32_t kNan = kNan_;
  static constexpr bool kHasInfinity = kInfinity != kNan;
  static constexpr uint32_t kSmallestNormal = 1u << (kBits - 1 - kExponentBits);

  // In terms of a float32's bits: the difference of the exponents' biases; the smallest normal number; what
  // `kOverflow_` is or, if it is infinity, would be as a number; and a number with as many units in its last
  // place as one subnormal has.
  static constexpr uint32_t kRebias = (128u - (1u << (kExponentBits - 1))) << 23;
  static constexpr uint32_t kWideSmallestNormal = kRebias + (1u << 23);
  static constexpr uint32_t kWideOverflow = kRebias + (uint32_t{kOverflow_} << kDroppedBits);
  static constexpr uint32_t kWideSubnormalUnit = kRebias + (uint32_t{kDroppedBits + 1} << 23);
  static constexpr float kSubnormalUnit = __builtin_bit_cast(float, kWideSubnormalUnit) / 0x1p23f;

  TOPOCCL_HOST_DEVICE static constexpr uint32_t widenBits(Stored stored) {
    const uint32_t magnitude = stored & kMagnitude;
    const uint32_t sign = (stored & ~kMagnitude) << (32 - kBits);
    if (magnitude > kInfinity) return quietNanBits(float{});
    if (magnitude == kInfinity) return kHasInfinity ? sign | 0x7f800000u : quietNanBits(float{});
    if (magnitude < kSmallestNormal)
      return sign | __builtin_bit_cast(uint32_t, static_cast<float>(magnitude) * kSubnormalUnit);
    return sign | ((magnitude << kDroppedBits) + kRebias);
  }

  // Numbers beyond the largest are brought down to kWideOverflow first, which is exact. Normal numbers round
  // as bfloat16 does. Adding a number whose last place is the unit of subnormals rounds one to that unit.
  TOPOCCL_HOST_DEVICE static constexpr Stored narrowBits(uint32_t wide) {
    uint32_t magnitude = wide & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<Stored>(kNan);
    if (magnitude > kWideOverflow) magnitude = kWideOverflow;
    uint32_t rounded = 0;
    if (magnitude < kWideSmallestNormal) {
      const float sum = __builtin_bit_cast(float, magnitude) + __builtin_bit_cast(float, kWideSubnormalUnit);
      rounded = __builtin_bit_cast(uint32_t, sum) - kWideSubnormalUnit;
    } else {
      constexpr uint32_t kAlmostHalf = (1u << (kDroppedBits - 1)) - 1;
      const uint32_t lowestKept = magnitude >> kDroppedBits & 1u;
      rounded = (magnitude - kRebias + kAlmostHalf + lowestKept) >> kDroppedBits;
    }
    return static_cast<Stored>(wide >> 31 << (kBits - 1) | rounded);
  }
};

// IEEE 754 binary16: results beyond 65504 become infinity.
using Float16 = SmallFloat<uint16_t, 5, 0x7c00, 0x7e00, 0x7c00>;
// OCP 8-bit floating point, with CUDA's conversion: results beyond 448, and beyond 57344, become these.
using Float8e4m3 = SmallFloat<uint8_t, 4, 0x7f, 0x7f, 0x7e>;
using Float8e5m2 = SmallFloat<uint8_t, 5, 0x7c, 0x7e, 0x7b>;

// function(Int32()), function(Float32()), ... as `type` says; for no type of ours what the function's result
// is by default.
template <class Function>
auto withElement(DataType type, const Function& function) {
  switch (type) {
    case DataType::Int8:
      return function(Int8());
    case DataType::Uint8:
      return function(Uint8());
    case DataType::Int32:
      return function(Int32());
    case DataType::Uint32:
      return function(Uint32());
    case DataType::Int64:
      return function(Int64());
    case DataType::Uint64:
      return function(Uint64());
    case DataType::Float16:
      return function(Float16());
    case DataType::Float32:
      return function(Float32());
    case DataType::Float64:
      return function(Float64());
    case DataType::Bfloat16:
      return function(Bfloat16());
    case DataType::Float8e4m3:
      return function(Float8e4m3());
    case DataType::Float8e5m2:
      return function(Float8e5m2());
  }
  return decltype(function(Float32())){};
}

}  // namespace topoccl
