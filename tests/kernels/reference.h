// What combine() must compute, one element at a time and as plainly as can be.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/combine_args.h"
#include "kernels/formats.h"

namespace topoccl::reference {

// Arithmetic of one type: Stored in memory, Wide in between.
template <DataType>
struct Arithmetic;

template <class Float>
struct FloatArithmetic {
  using Wide = Float;
  static Wide add(Wide a, Wide b) { return a + b; }
  static Wide multiply(Wide a, Wide b) { return a * b; }
  static Wide maximum(Wide a, Wide b) {
    if (std::isnan(b)) return a;
    if (std::isnan(a)) return b;
    if (a == 0 && b == 0) return std::signbit(a) ? b : a;
    return a < b ? b : a;
  }
  static Wide minimum(Wide a, Wide b) { return -maximum(-a, -b); }
};

template <class Float>
struct PlainFloat : FloatArithmetic<Float> {
  using Stored = Float;
  static Float load(Float stored) { return stored; }
  static Float store(Float wide) { return std::isnan(wide) ? std::numeric_limits<Float>::quiet_NaN() : wide; }
};

template <class Stored_, const Format& kFormat>
struct SmallFloat : FloatArithmetic<float> {
  using Stored = Stored_;
  static float load(Stored stored) { return widen(kFormat, stored); }
  static Stored store(float wide) { return static_cast<Stored>(narrow(kFormat, wide)); }
};

// Modulo 2^64, of which narrower types keep the lower bits.
template <class Integer>
struct IntegerArithmetic {
  using Stored = Integer;
  using Wide = Integer;
  static Integer load(Integer stored) { return stored; }
  static Integer store(Integer wide) { return wide; }
  static Integer add(Integer a, Integer b) {
    return static_cast<Integer>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
  static Integer multiply(Integer a, Integer b) {
    return static_cast<Integer>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
  static Integer maximum(Integer a, Integer b) { return a < b ? b : a; }
  static Integer minimum(Integer a, Integer b) { return a < b ? a : b; }
  // C++ truncates towards zero; both operands are positive or signed and of 64 bits.
  static Integer divide(Integer a, uint32_t divisor) {
    if constexpr (std::numeric_limits<Integer>::is_signed)
      return static_cast<Integer>(int64_t{a} / int64_t{divisor});
    else
      return static_cast<Integer>(uint64_t{a} / uint64_t{divisor});
  }
};

template <>
struct Arithmetic<DataType::Int8> : IntegerArithmetic<int8_t> {};
template <>
struct Arithmetic<DataType::Uint8> : IntegerArithmetic<uint8_t> {};
template <>
struct Arithmetic<DataType::Int32> : IntegerArithmetic<int32_t> {};
template <>
struct Arithmetic<DataType::Uint32> : IntegerArithmetic<uint32_t> {};
template <>
struct Arithmetic<DataType::Int64> : IntegerArithmetic<int64_t> {};
template <>
struct Arithmetic<DataType::Uint64> : IntegerArithmetic<uint64_t> {};
template <>
struct Arithmetic<DataType::Float16> : SmallFloat<uint16_t, kFloat16> {};
template <>
struct Arithmetic<DataType::Float32> : PlainFloat<float> {};
template <>
struct Arithmetic<DataType::Float64> : PlainFloat<double> {};
template <>
struct Arithmetic<DataType::Bfloat16> : SmallFloat<uint16_t, kBfloat16> {};
template <>
struct Arithmetic<DataType::Float8e4m3> : SmallFloat<uint8_t, kFloat8e4m3> {};
template <>
struct Arithmetic<DataType::Float8e5m2> : SmallFloat<uint8_t, kFloat8e5m2> {};

template <class A>
typename A::Wide reduce(Operator op, typename A::Wide a, typename A::Wide b) {
  switch (op) {
    case Operator::Prod:
      return A::multiply(a, b);
    case Operator::Max:
      return A::maximum(a, b);
    case Operator::Min:
      return A::minimum(a, b);
    default:
      return A::add(a, b);
  }
}

template <DataType kType>
typename Arithmetic<kType>::Stored combineElement(const CombineArgs& args, Operator op, uint64_t index) {
  using A = Arithmetic<kType>;
  using Stored = typename A::Stored;
  using Wide = typename A::Wide;
  const bool sums = op == Operator::Sum || op == Operator::Avg;
  const bool divides = sums && !isFloating(kType) && args.divisor != 1;
  Wide result{};
  for (uint32_t i = 0; i < args.inputCount; ++i) {
    Stored stored;
    std::memcpy(&stored, static_cast<const char*>(args.inputs[i]) + index * sizeof(stored), sizeof(stored));
    const bool scaled = sums && ((args.scaledInputs >> (i < 63 ? i : 63)) & 1) != 0;
    if (args.inputCount == 1 && !scaled && !divides) return stored;
    Wide value = A::load(stored);
    if (scaled) value = A::load(A::store(A::multiply(value, args.scale.as<Wide>())));
    result = i == 0 ? value : reduce<A>(op, result, value);
  }
  if constexpr (!isFloating(kType)) {
    if (divides) result = A::divide(result, args.divisor);
  }
  return A::store(result);
}

template <DataType kType>
void combineAll(const CombineArgs& args, Operator op, std::vector<uint8_t>& result) {
  for (uint64_t i = 0; i < args.count; ++i) {
    const auto element = combineElement<kType>(args, op, i);
    std::memcpy(result.data() + i * sizeof(element), &element, sizeof(element));
  }
}

// The bytes that every output must hold.
inline std::vector<uint8_t> combine(DataType type, Operator op, const CombineArgs& args) {
  using Function = void (*)(const CombineArgs&, Operator, std::vector<uint8_t>&);
  static constexpr Function kFunctions[kDataTypeCount] = {
      combineAll<DataType::Int8>,     combineAll<DataType::Uint8>,      combineAll<DataType::Int32>,
      combineAll<DataType::Uint32>,   combineAll<DataType::Int64>,      combineAll<DataType::Uint64>,
      combineAll<DataType::Float16>,  combineAll<DataType::Float32>,    combineAll<DataType::Float64>,
      combineAll<DataType::Bfloat16>, combineAll<DataType::Float8e4m3>, combineAll<DataType::Float8e5m2>};
  std::vector<uint8_t> result(args.count * elementBytes(type));
  kFunctions[static_cast<int>(type)](args, op, result);
  return result;
}

}  // namespace topoccl::reference
