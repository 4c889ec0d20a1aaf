// What combine() must compute, one element at a time and as plainly as can be.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/combine_args.h"

namespace topoccl::reference {

inline constexpr uint16_t kBfloat16Nan = 0x7fc0;

inline float widen(uint16_t stored) {
  const uint32_t bits = uint32_t{stored} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// The nearer of the two neighbours, measured in double where every distance is exact; ties to the even one.
inline uint16_t narrow(float wide) {
  if (std::isnan(wide)) return kBfloat16Nan;
  uint32_t bits;
  std::memcpy(&bits, &wide, sizeof(bits));
  const auto below = static_cast<uint16_t>(bits >> 16);
  if (std::isinf(wide)) return below;
  const auto above = static_cast<uint16_t>(below + 1);
  const double magnitude = std::fabs(double{wide});
  const double low = std::fabs(double{widen(below)});
  const double high = (above & 0x7fff) == 0x7f80 ? 0x1p128 : std::fabs(double{widen(above)});
  if (magnitude - low != high - magnitude) return magnitude - low < high - magnitude ? below : above;
  return below % 2 == 0 ? below : above;
}

inline uint16_t narrowBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return narrow(value);
}

// Arithmetic of one type: Stored in memory, Wide in between.
template <DataType>
struct Arithmetic;

template <class Float>
struct FloatArithmetic {
  using Stored = Float;
  using Wide = Float;
  static Float load(Float stored) { return stored; }
  static Float store(Float wide) { return std::isnan(wide) ? std::numeric_limits<Float>::quiet_NaN() : wide; }
};

template <class Wide>
Wide maximum(Wide a, Wide b) {
  if constexpr (std::numeric_limits<Wide>::has_quiet_NaN) {
    if (std::isnan(b)) return a;
    if (std::isnan(a)) return b;
    if (a == 0 && b == 0) return std::signbit(a) ? b : a;
  }
  return a < b ? b : a;
}

template <>
struct Arithmetic<DataType::Float32> : FloatArithmetic<float> {};
template <>
struct Arithmetic<DataType::Float64> : FloatArithmetic<double> {};
template <>
struct Arithmetic<DataType::Bfloat16> {
  using Stored = uint16_t;
  using Wide = float;
  static float load(uint16_t stored) { return widen(stored); }
  static uint16_t store(float wide) { return narrow(wide); }
};
template <>
struct Arithmetic<DataType::Int32> {
  using Stored = int32_t;
  using Wide = int64_t;
  static int64_t load(int32_t stored) { return stored; }
  static int32_t store(int64_t wide) { return static_cast<int32_t>(static_cast<uint32_t>(wide)); }
};

template <DataType kType>
typename Arithmetic<kType>::Stored combineElement(const CombineArgs& args, Operator op, uint64_t index) {
  using A = Arithmetic<kType>;
  using Stored = typename A::Stored;
  using Wide = typename A::Wide;
  constexpr bool kFloating = kType != DataType::Int32;
  Wide result{};
  for (uint32_t i = 0; i < args.inputCount; ++i) {
    Stored stored;
    std::memcpy(&stored, static_cast<const char*>(args.inputs[i]) + index * sizeof(stored), sizeof(stored));
    const bool scaled = kFloating && ((args.scaledInputs >> (i < 63 ? i : 63)) & 1) != 0;
    if (args.inputCount == 1 && !scaled && (kFloating || args.divisor == 1)) return stored;
    Wide value = A::load(stored);
    if (scaled) value = A::load(A::store(static_cast<Wide>(value * args.scale.as<Wide>())));
    if (i == 0)
      result = value;
    else
      result = op == Operator::Max ? maximum(result, value) : result + value;
  }
  if (!kFloating && args.divisor != 1)
    result = static_cast<Wide>(static_cast<int64_t>(A::load(A::store(result))) / int64_t{args.divisor});
  return A::store(result);
}

template <DataType kType>
void combineAll(const CombineArgs& args, Operator op, void* result) {
  for (uint64_t i = 0; i < args.count; ++i) {
    const auto element = combineElement<kType>(args, op, i);
    std::memcpy(static_cast<char*>(result) + i * sizeof(element), &element, sizeof(element));
  }
}

// The bytes that every output must hold.
inline std::vector<uint8_t> combine(DataType type, Operator op, const CombineArgs& args) {
  std::vector<uint8_t> result(args.count * elementBytes(type));
  switch (type) {
    case DataType::Int32:
      combineAll<DataType::Int32>(args, op, result.data());
      break;
    case DataType::Float32:
      combineAll<DataType::Float32>(args, op, result.data());
      break;
    case DataType::Float64:
      combineAll<DataType::Float64>(args, op, result.data());
      break;
    case DataType::Bfloat16:
      combineAll<DataType::Bfloat16>(args, op, result.data());
      break;
    default:
      break;
  }
  return result;
}

}  // namespace topoccl::reference
