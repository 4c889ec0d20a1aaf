// Floating types that are narrower than their arithmetic: every value, and rounding of floats, all of them in
// the full test, against integer arithmetic. In single elements and in every instruction set's vectors.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/combine_args.h"
#include "kernels/elements.h"
#include "kernels/formats.h"
#include "kernels/targets.h"
#include "kernels/vector_conversion.h"
#include "support/sanitized.h"

namespace topoccl {
namespace {

using reference::Format;
using test::kSanitized;

template <class Element_, DataType kType_, const Format& kFormat_>
struct Row {
  using Element = Element_;
  using Stored = typename Element::Stored;
  static constexpr DataType kType = kType_;
  static constexpr const Format& kFormat = kFormat_;
  static constexpr uint32_t kValues = 1u << (8 * sizeof(Stored));
};
using Rows = testing::Types<Row<Bfloat16, DataType::Bfloat16, reference::kBfloat16>,
                            Row<Float16, DataType::Float16, reference::kFloat16>,
                            Row<Float8e4m3, DataType::Float8e4m3, reference::kFloat8e4m3>,
                            Row<Float8e5m2, DataType::Float8e5m2, reference::kFloat8e5m2>>;

struct RowNames {
  template <class T>
  static std::string GetName(int) {
    return name(T::kType);
  }
};

float asFloat(uint32_t bits) {
  return std::bit_cast<float>(bits);
}
uint32_t asBits(float value) {
  return std::bit_cast<uint32_t>(value);
}

// All values of a type, in order of their bits.
template <class Stored>
std::vector<Stored> allValues() {
  std::vector<Stored> all(size_t{1} << (8 * sizeof(Stored)));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Stored>(i);
  return all;
}

// Combines columns of one type: `inputs` in, one column out.
template <class T>
std::vector<typename T::Stored> combineColumns(const std::vector<std::vector<typename T::Stored>>& inputs,
                                               Operator op, std::optional<float> scale = {}) {
  std::vector<typename T::Stored> out(inputs[0].size());
  std::vector<const void*> pointers;
  for (const auto& input : inputs) pointers.push_back(input.data());
  void* outputs[] = {out.data()};
  CombineArgs args;
  args.inputs = pointers.data();
  args.inputCount = static_cast<uint32_t>(pointers.size());
  args.outputs = outputs;
  args.outputCount = 1;
  args.count = out.size();
  args.scale = ScaleValue::of(scale.value_or(0.0f));
  args.scaledInputs = scale ? ~uint64_t{0} : 0;
  hostCombine(T::kType, op)(args);
  return out;
}

// Rounding is tried on every so-manieth float, counted by bits. All 2^32 take some minutes, far more with a
// sanitizer; types of 8 bits round at few places.
uint64_t strideOfFloats(size_t elementBytes) {
  if (std::getenv("TOPOCCL_TEST_REDUCED") != nullptr) return 65537;
  if (std::getenv("TOPOCCL_TEST_FULL") == nullptr || kSanitized) return 257;
  return elementBytes == 1 ? 17 : 1;
}

// Floats at which rounding changes its mind: between any two neighbouring values, and next to those.
template <class T>
std::vector<uint32_t> boundaries() {
  std::vector<uint32_t> all;
  const uint32_t magnitudes = T::kValues / 2;
  for (uint32_t value = 0; value < T::kValues; ++value) {
    const uint32_t next = value % magnitudes + 1 < magnitudes ? value + 1 : value;
    const uint32_t here = asBits(reference::widen(T::kFormat, value));
    const uint32_t there = asBits(reference::widen(T::kFormat, next));
    const uint32_t middle = here + (there - here) / 2;
    for (uint32_t bits : {here, middle, there})
      for (uint32_t offset : {-2u, -1u, 0u, 1u, 2u}) all.push_back(bits + offset);
  }
  for (uint32_t bits : {0x7f800000u, 0xff800000u, 0x7f800001u, 0xffffffffu, 0x7f7fffffu, 0x00000001u})
    all.push_back(bits);
  while (all.size() % kConversionMultiple != 0) all.push_back(0);
  return all;
}

using Narrow = std::function<uint32_t(uint32_t)>;

// The first of these floats that is not rounded as the reference does it.
template <class T>
std::optional<uint32_t> misrounded(const std::vector<uint32_t>& floats, const Narrow& narrow) {
  for (uint32_t bits : floats)
    if (narrow(bits) != reference::narrow(T::kFormat, bits)) return bits;
  return {};
}

template <class T>
class SmallFloat : public testing::Test {};
TYPED_TEST_SUITE(SmallFloat, Rows, RowNames);

TYPED_TEST(SmallFloat, KeepsEveryValueAndQuietsNans) {
  using Element = typename TypeParam::Element;
  const Format& format = TypeParam::kFormat;
  for (uint32_t value = 0; value < TypeParam::kValues; ++value) {
    const uint32_t wide = Element::widenBits(static_cast<typename TypeParam::Stored>(value));
    const uint32_t narrowed = Element::narrowBits(wide);
    if (format.isNan(value)) {
      ASSERT_TRUE(std::isnan(asFloat(wide))) << value;
      ASSERT_EQ(narrowed, format.nan);
    } else {
      const float expected = reference::widen(format, value);
      ASSERT_EQ(wide, asBits(expected)) << value;
      ASSERT_EQ(narrowed, std::isinf(expected) ? (value & format.signBit()) | format.overflow : value);
    }
  }
}

TYPED_TEST(SmallFloat, RoundsToNearestEvenAtEveryBoundary) {
  const auto wrong = misrounded<TypeParam>(
      boundaries<TypeParam>(), [](uint32_t bits) { return TypeParam::Element::narrowBits(bits); });
  ASSERT_FALSE(wrong) << std::hex << *wrong;
}

// Elements and vectors alike.
TYPED_TEST(SmallFloat, RoundsFloatsToNearestEven) {
  using Stored = typename TypeParam::Stored;
  constexpr size_t kBatch = 1 << 16;
  const uint64_t stride = strideOfFloats(sizeof(Stored));
  std::vector<uint32_t> floats(kBatch);
  std::vector<Stored> expected(kBatch);
  std::vector<Stored> actual(kBatch);
  for (uint64_t next = 0; next < uint64_t{1} << 32;) {
    for (size_t i = 0; i < kBatch; ++i, next += stride) {
      floats[i] = static_cast<uint32_t>(next);
      expected[i] = static_cast<Stored>(reference::narrow(TypeParam::kFormat, floats[i]));
      ASSERT_EQ(TypeParam::Element::narrowBits(floats[i]), expected[i]) << std::hex << floats[i];
    }
    forEachTarget([&] {
      narrowVectors(TypeParam::kType, floats.data(), kBatch, actual.data());
      const auto wrong = std::mismatch(actual.begin(), actual.end(), expected.begin()).first - actual.begin();
      ASSERT_EQ(static_cast<size_t>(wrong), kBatch) << std::hex << floats[static_cast<size_t>(wrong)];
    });
    if (this->HasFatalFailure()) return;
  }
}

TYPED_TEST(SmallFloat, RoundsVectorsAtEveryBoundary) {
  using Stored = typename TypeParam::Stored;
  const std::vector<uint32_t> floats = boundaries<TypeParam>();
  std::vector<Stored> actual(floats.size());
  forEachTarget([&] {
    narrowVectors(TypeParam::kType, floats.data(), floats.size(), actual.data());
    for (size_t i = 0; i < floats.size(); ++i)
      ASSERT_EQ(actual[i], reference::narrow(TypeParam::kFormat, floats[i])) << std::hex << floats[i];
  });
}

TYPED_TEST(SmallFloat, WidensEveryValueInVectors) {
  const auto all = allValues<typename TypeParam::Stored>();
  std::vector<uint32_t> wide(all.size());
  forEachTarget([&] {
    widenVectors(TypeParam::kType, all.data(), all.size(), wide.data());
    for (uint32_t value = 0; value < all.size(); ++value) {
      if (TypeParam::kFormat.isNan(value))
        ASSERT_TRUE(std::isnan(asFloat(wide[value]))) << value;
      else
        ASSERT_EQ(wide[value], asBits(reference::widen(TypeParam::kFormat, value))) << value;
    }
  });
}

// What the tests above would find: wrong roundings of every kind.
TYPED_TEST(SmallFloat, WrongRoundingIsFound) {
  using Element = typename TypeParam::Element;
  const Format& format = TypeParam::kFormat;
  const uint32_t dropped = (1u << (23 - format.fractionBits)) - 1;
  const Narrow right = [](uint32_t bits) { return Element::narrowBits(bits); };
  const Narrow truncating = [=](uint32_t bits) { return right(bits > 0x7f800000u ? bits : bits & ~dropped); };
  const Narrow tiesUp = [=](uint32_t bits) { return right((bits & dropped) == 0 ? bits : bits | 1); };
  const Narrow tiesDown = [=](uint32_t bits) { return right((bits & dropped) == 0 ? bits : bits - 1); };
  const Narrow flushing = [=](uint32_t bits) {
    const uint32_t result = right(bits);
    const uint32_t magnitude = result & (format.signBit() - 1);
    return magnitude < 1u << format.fractionBits ? result - magnitude : result;
  };
  const Narrow beyond = [=](uint32_t bits) {
    const uint32_t result = right(bits);
    return (result & (format.signBit() - 1)) == format.overflow &&
                   asBits(reference::widen(format, result)) != bits
               ? result - 1
               : result;
  };
  const std::vector<uint32_t> floats = boundaries<TypeParam>();
  EXPECT_FALSE(misrounded<TypeParam>(floats, right));
  for (const Narrow& wrong : {truncating, tiesUp, tiesDown, flushing, beyond})
    EXPECT_TRUE(misrounded<TypeParam>(floats, wrong));
}

// Every value with every value where there are few, else with awkward ones.
template <class T>
std::vector<std::vector<typename T::Stored>> pairs() {
  using Stored = typename T::Stored;
  std::vector<Stored> others = {0x0000, static_cast<Stored>(T::kValues / 2), 0x0001};
  if (sizeof(Stored) == 1) {
    others = allValues<Stored>();
  } else {
    for (uint32_t bits : {0x3c00u, 0x3f80u, 0xbf81u, 0xbc01u, 0x7bffu, 0x7c00u, 0x7f7fu, 0x7f80u, 0xff80u,
                          0xfc01u, 0x7f81u, 0xffc1u, 0x0400u, 0x03ffu, 0x83feu})
      others.push_back(static_cast<Stored>(bits));
  }
  std::vector<std::vector<Stored>> columns(2);
  for (Stored a : allValues<Stored>()) {
    for (Stored b : others) {
      columns[0].push_back(a);
      columns[1].push_back(b);
    }
  }
  return columns;
}

TYPED_TEST(SmallFloat, AddsAndMultipliesPairs) {
  const auto columns = pairs<TypeParam>();
  forEachTarget([&] {
    const auto sums = combineColumns<TypeParam>(columns, Operator::Sum);
    const auto products = combineColumns<TypeParam>(columns, Operator::Prod);
    for (size_t i = 0; i < sums.size(); ++i) {
      const float a = reference::widen(TypeParam::kFormat, columns[0][i]);
      const float b = reference::widen(TypeParam::kFormat, columns[1][i]);
      ASSERT_EQ(sums[i], reference::narrow(TypeParam::kFormat, a + b)) << a << " + " << b;
      ASSERT_EQ(products[i], reference::narrow(TypeParam::kFormat, a * b)) << a << " * " << b;
    }
  });
}

TYPED_TEST(SmallFloat, RoundsEveryScaledValueOnce) {
  const auto all = allValues<typename TypeParam::Stored>();
  forEachTarget([&] {
    for (float scale :
         {1.0f / 3, 1.0f / 7, 0x1.02p0f, 0x1.06p0f, 0x1.fffffep-2f, 0x1p-8f, 0x1.8p127f, -0.2f}) {
      const auto actual = combineColumns<TypeParam>({all}, Operator::Avg, scale);
      for (size_t i = 0; i < all.size(); ++i)
        ASSERT_EQ(actual[i],
                  reference::narrow(TypeParam::kFormat, reference::widen(TypeParam::kFormat, all[i]) * scale))
            << std::hex << i << " times " << scale;
    }
  });
}

TYPED_TEST(SmallFloat, CopiesEveryBitPatternAsItIs) {
  const auto all = allValues<typename TypeParam::Stored>();
  forEachTarget([&] {
    for (Operator op : {Operator::Sum, Operator::Prod, Operator::Max, Operator::Min, Operator::Avg})
      EXPECT_EQ(combineColumns<TypeParam>({all}, op), all);
  });
}

// NCCL adds and multiplies 8-bit types in half precision, which rounds twice. For two operands that makes no
// difference: docs/semantics.md says so.
template <const Format& kFormat>
void expectSameThroughHalf() {
  for (uint32_t i = 0; i < 65536; ++i) {
    const float a = reference::widen(kFormat, i / 256);
    const float b = reference::widen(kFormat, i % 256);
    for (float exact : {a + b, a * b}) {
      const float half = reference::widen(reference::kFloat16, reference::narrow(reference::kFloat16, exact));
      ASSERT_EQ(reference::narrow(kFormat, half), reference::narrow(kFormat, exact)) << a << ", " << b;
    }
  }
}

TEST(Float8, RoundsPairsAsIfInHalfPrecision) {
  expectSameThroughHalf<reference::kFloat8e4m3>();
  expectSameThroughHalf<reference::kFloat8e5m2>();
}

}  // namespace
}  // namespace topoccl
