// Floating types of 16 and 8 bits by their formats: conversion by integer arithmetic alone, which shares
// nothing with the kernels' tricks. Any format rounds by the same few lines.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace topoccl::reference {

struct Format {
  int exponentBits;
  int fractionBits;
  bool hasInfinity;
  uint32_t nan;       // what a NaN becomes
  uint32_t overflow;  // what is too large becomes

  constexpr uint32_t signBit() const { return 1u << (exponentBits + fractionBits); }
  constexpr int smallestExponent() const { return 2 - (1 << (exponentBits - 1)) - fractionBits; }
  // Magnitudes from here on are infinity and NaNs.
  constexpr uint32_t firstSpecial() const {
    return hasInfinity ? ((1u << exponentBits) - 1) << fractionBits : nan;
  }
  constexpr bool isNan(uint32_t bits) const {
    const uint32_t magnitude = bits & (signBit() - 1);
    return hasInfinity ? magnitude > firstSpecial() : magnitude == nan;
  }
};

// IEEE 754 binary16; the upper half of binary32; OCP 8-bit floating point, saturating as CUDA's types do.
inline constexpr Format kFloat16{5, 10, true, 0x7e00, 0x7c00};
inline constexpr Format kBfloat16{8, 7, true, 0x7fc0, 0x7f80};
inline constexpr Format kFloat8e4m3{4, 3, false, 0x7f, 0x7e};
inline constexpr Format kFloat8e5m2{5, 2, true, 0x7e, 0x7b};

inline float widen(const Format& format, uint32_t bits) {
  if (format.isNan(bits)) return std::numeric_limits<float>::quiet_NaN();
  const float sign = (bits & format.signBit()) != 0 ? -1.0f : 1.0f;
  const uint32_t magnitude = bits & (format.signBit() - 1);
  if (magnitude >= format.firstSpecial()) return sign * std::numeric_limits<float>::infinity();
  const uint32_t one = 1u << format.fractionBits;
  const auto exponent = static_cast<int>(magnitude / one);
  const uint32_t significand = exponent == 0 ? magnitude : magnitude % one + one;
  const double units = std::ldexp(significand, format.smallestExponent() + (exponent > 0 ? exponent - 1 : 0));
  return sign * static_cast<float>(units);
}

// significand * 2^-shift, to the nearest integer, ties to even.
inline uint32_t roundedShift(uint32_t significand, int shift) {
  if (shift <= 0) return significand << -shift;
  if (shift > 30) return 0;
  const uint32_t units = significand >> shift;
  const uint32_t rest = significand - (units << shift);
  const uint32_t half = 1u << (shift - 1);
  return units + (rest > half || (rest == half && units % 2 == 1) ? 1 : 0);
}

// The element nearest to the float with these bits.
inline uint32_t narrow(const Format& format, uint32_t wide) {
  const uint32_t magnitude = wide & 0x7fffffffu;
  const uint32_t sign = wide >> 31 != 0 ? format.signBit() : 0;
  if (magnitude > 0x7f800000u) return format.nan;
  if (magnitude == 0x7f800000u) return sign | format.overflow;
  const uint32_t one = 1u << 23;
  const auto field = static_cast<int>(magnitude / one);
  const uint32_t significand = field == 0 ? magnitude : magnitude % one + one;
  const int exponent = (field == 0 ? 1 : field) - 150;  // the float is significand * 2^exponent
  const int smallest = format.smallestExponent();
  const int leading = exponent + static_cast<int>(std::bit_width(significand)) - 1;
  const int unit = std::max(leading - format.fractionBits, smallest);
  const uint32_t units = roundedShift(significand, unit - exponent);
  const uint32_t rounded = (static_cast<uint32_t>(unit - smallest) << format.fractionBits) + units;
  return sign | (rounded < format.firstSpecial() ? rounded : format.overflow);
}

inline uint32_t narrow(const Format& format, float wide) {
  return narrow(format, std::bit_cast<uint32_t>(wide));
}

}  // namespace topoccl::reference
