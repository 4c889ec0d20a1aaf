// bfloat16: exhaustive checks of rounding, alone and through every instruction set's vectors.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/combine_args.h"
#include "kernels/elements.h"
#include "kernels/reference.h"
#include "kernels/targets.h"

namespace topoccl {
namespace {

// Around every place where rounding changes its mind.
constexpr uint32_t kLowerHalves[] = {0x0000, 0x0001, 0x4000, 0x7ffe, 0x7fff, 0x8000,
                                     0x8001, 0x8002, 0xbfff, 0xc000, 0xfffe, 0xffff};

float asFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

uint32_t asBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

uint16_t truncated(float value) {
  return static_cast<uint16_t>(asBits(value) >> 16);
}

// Combines columns of bfloat16 values: `inputs` in, one column out.
std::vector<uint16_t> combineColumns(const std::vector<std::vector<uint16_t>>& inputs, Operator op,
                                     double scale = 1.0) {
  std::vector<uint16_t> out(inputs[0].size());
  std::vector<const void*> pointers;
  for (const auto& input : inputs) pointers.push_back(input.data());
  void* outputs[] = {out.data()};
  CombineArgs args;
  args.inputs = pointers.data();
  args.inputCount = static_cast<uint32_t>(pointers.size());
  args.outputs = outputs;
  args.outputCount = 1;
  args.count = out.size();
  args.scale = ScaleValue::of(static_cast<float>(scale));
  args.scaledInputs = scale == 1.0 ? 0 : ~uint64_t{0};
  hostCombine(DataType::Bfloat16, op)(args);
  return out;
}

std::vector<uint16_t> allValues() {
  std::vector<uint16_t> all(65536);
  for (uint32_t i = 0; i < 65536; ++i) all[i] = static_cast<uint16_t>(i);
  return all;
}

TEST(Bfloat16, RoundsToNearestEvenForEveryUpperHalf) {
  for (uint32_t upper = 0; upper < 65536; ++upper) {
    for (uint32_t lower : kLowerHalves) {
      const uint32_t bits = upper << 16 | lower;
      ASSERT_EQ(Bfloat16::narrowBits(bits), reference::narrowBits(bits)) << std::hex << bits;
    }
  }
}

TEST(Bfloat16, RoundsToNearestEvenForEveryLowerHalf) {
  for (uint32_t upper :
       {0x0000u, 0x8001u, 0x007fu, 0x3f80u, 0x3f81u, 0xbfffu, 0x7f7fu, 0xff7fu, 0x7f80u, 0x7fbfu}) {
    for (uint32_t lower = 0; lower < 65536; ++lower) {
      const uint32_t bits = upper << 16 | lower;
      ASSERT_EQ(Bfloat16::narrowBits(bits), reference::narrowBits(bits)) << std::hex << bits;
    }
  }
}

TEST(Bfloat16, KeepsEveryValueAndInfinitiesAndQuietsNans) {
  for (uint32_t upper = 0; upper < 65536; ++upper) {
    const auto stored = static_cast<uint16_t>(upper);
    const bool nan = (upper & 0x7fff) > 0x7f80;
    ASSERT_EQ(Bfloat16::narrowBits(Bfloat16::widenBits(stored)), nan ? 0x7fc0 : stored);
  }
  EXPECT_EQ(Bfloat16::narrowBits(0x7f7fffffu), 0x7f80);  // beyond the largest finite value
  EXPECT_EQ(Bfloat16::narrowBits(0x7f800001u), 0x7fc0);  // a NaN whose upper half looks like infinity
}

// float = upper + middle + lower, each a bfloat16 and every partial sum exact: so vectors meet every upper
// half with every kind of lower half. Where the parts would be too small to exist the test skips; there the
// scaled test below reaches.
TEST(Bfloat16, RoundsSumsOnceInEveryVectorAndTail) {
  std::vector<std::vector<uint16_t>> parts(3);
  std::vector<uint16_t> expected;
  for (uint32_t upper = 0; upper < 65536; ++upper) {
    for (uint32_t lower : kLowerHalves) {
      const float value = asFloat(upper << 16 | lower);
      if (std::isnan(value)) continue;
      const float a = asFloat(upper << 16);
      const float b = std::isinf(value) ? 0.0f : reference::widen(truncated(value - a));
      const float c = std::isinf(value) ? 0.0f : value - a - b;
      if (asBits(c) % 65536 != 0 || asBits(a + b + c) != asBits(value)) continue;
      parts[0].push_back(truncated(a));
      parts[1].push_back(truncated(b));
      parts[2].push_back(truncated(c));
      expected.push_back(reference::narrow(value));
    }
  }
  ASSERT_GT(expected.size(), 700000u);
  forEachTarget([&] {
    const std::vector<uint16_t> actual = combineColumns(parts, Operator::Sum);
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(actual[i], expected[i])
          << std::hex << parts[0][i] << " " << parts[1][i] << " " << parts[2][i];
  });
}

TEST(Bfloat16, RoundsEveryScaledValueOnce) {
  const std::vector<uint16_t> all = allValues();
  forEachTarget([&] {
    for (double scale : {1.0 / 3, 1.0 / 7, 0x1.01p0, 0x1.03p0, 0x1.fffffep-2, 0x1p-8, 0x1.8p127, -1.0 / 5}) {
      const std::vector<uint16_t> actual = combineColumns({all}, Operator::Avg, scale);
      for (size_t i = 0; i < all.size(); ++i)
        ASSERT_EQ(actual[i], reference::narrow(reference::widen(all[i]) * static_cast<float>(scale)))
            << std::hex << i << " times " << scale;
    }
  });
}

TEST(Bfloat16, AddsEveryValueToAwkwardOnes) {
  constexpr uint16_t kOthers[] = {0x0000, 0x8000, 0x0001, 0x3f80, 0xbf81,
                                  0x7f7f, 0x7f80, 0xff80, 0x7f81, 0xffc1};
  const std::vector<uint16_t> all = allValues();
  forEachTarget([&] {
    for (uint16_t other : kOthers) {
      const std::vector<uint16_t> actual =
          combineColumns({all, std::vector<uint16_t>(65536, other)}, Operator::Sum);
      for (size_t i = 0; i < all.size(); ++i)
        ASSERT_EQ(actual[i], reference::narrow(reference::widen(all[i]) + reference::widen(other)))
            << std::hex << i << " + " << other;
    }
  });
}

TEST(Bfloat16, CopiesEveryBitPatternAsItIs) {
  const std::vector<uint16_t> all = allValues();
  forEachTarget([&] { EXPECT_EQ(combineColumns({all}, Operator::Sum), all); });
}

}  // namespace
}  // namespace topoccl
