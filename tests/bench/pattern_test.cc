// The exact check is only as good as its data and its comparison.
#include "common/pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <tuple>
#include <vector>

#include "common/verify.h"

namespace topoccl::bench {
namespace {

float asFloat(uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

TEST(Elements, FloatsConvertAsTheProcessorDoes) {
  const ElementType& type = elementType(ncclFloat32);
  for (const double value : {0.0, 1.0, -1.5, 3.14159, 1e-40, 1.0 / 3, 16777217.0, -1e38, 1e-45}) {
    EXPECT_EQ(asFloat(static_cast<uint32_t>(encode(type, value))), static_cast<float>(value)) << value;
    EXPECT_EQ(decode(type, encode(type, value)), static_cast<double>(static_cast<float>(value))) << value;
  }
}

class EveryType : public testing::TestWithParam<int> {
 protected:
  const ElementType& type() const { return elementType(static_cast<ncclDataType_t>(GetParam())); }
};
INSTANTIATE_TEST_SUITE_P(Elements, EveryType, testing::Range(0, kElementTypeCount), [](const auto& tested) {
  return elementType(static_cast<ncclDataType_t>(tested.param)).name;
});

TEST_P(EveryType, HoldsAllIntegersUpToItsLimitAndNoMore) {
  const double limit = type().exactLimit;
  for (const double value : {0.0, 1.0, 2.0, std::floor(limit / 3), limit - 1, limit}) {
    EXPECT_EQ(decode(type(), encode(type(), value)), value) << value;
    if (!type().isSigned) continue;
    EXPECT_EQ(decode(type(), encode(type(), -value)), -value) << value;
  }
  if (limit == 0x1p53) return;  // doubles can't say the next integer
  EXPECT_NE(decode(type(), encode(type(), limit + 1)), limit + 1);
}

TEST(Elements, EveryElementOfOneOrTwoBytesSurvivesDecodeAndEncode) {
  for (int id = 0; id < kElementTypeCount; id++) {
    const ElementType& type = elementType(static_cast<ncclDataType_t>(id));
    for (uint64_t bits = 0; type.bytes <= 2 && bits < uint64_t{1} << (8 * type.bytes); bits++) {
      const double value = decode(type, bits);
      if (value == 0) continue;  // two zeros
      ASSERT_EQ(encode(type, value), bits) << type.name << " " << value;
    }
  }
}

TEST(Elements, UlpDistanceCountsElementsAcrossZero) {
  const ElementType& type = elementType(ncclFloat32);
  EXPECT_EQ(ulpDistance(type, encode(type, 1), encode(type, 1)), 0U);
  EXPECT_EQ(ulpDistance(type, 0x3f800000, 0x3f800002), 2U);
  EXPECT_EQ(ulpDistance(type, 0x00000001, 0x80000001), 2U);
  EXPECT_EQ(ulpDistance(type, 0x00000000, 0x80000000), 0U);
}

class EveryPattern : public testing::TestWithParam<std::tuple<int, int, int>> {
 protected:
  EveryPattern()
      : type_(elementType(static_cast<ncclDataType_t>(std::get<0>(GetParam())))),
        op_(std::get<1>(GetParam())),
        ranks_(std::get<2>(GetParam())),
        pattern_(type_, op_, ranks_, 7) {}

  // As an implementation would: every partial result is rounded to the type.
  double rounded(double value) const { return decode(type_, encode(type_, value)); }

  double combine(double a, double b) const {
    switch (op_) {
      case ncclProd:
        return rounded(a * b);
      case ncclMax:
        return std::max(a, b);
      case ncclMin:
        return std::min(a, b);
      default:
        return rounded(a + b);
    }
  }

  double element(const Stream& stream, size_t i) const {
    return decode(type_, loadBits(type_, stream.data() + i * type_.bytes));
  }

  const ElementType& type_;
  int op_;
  int ranks_;
  Pattern pattern_;
};
INSTANTIATE_TEST_SUITE_P(Pattern, EveryPattern,
                         testing::Combine(testing::Range(0, kElementTypeCount),
                                          testing::Range(0, kOperatorNameCount),
                                          testing::Values(1, 2, 3, 13, 64)));

TEST_P(EveryPattern, IsReducedExactlyInAnyOrder) {
  std::vector<Stream> inputs;
  for (int rank = 0; rank < ranks_; rank++) inputs.push_back(pattern_.input(rank));
  const size_t count = 200;
  const Stream expected = pattern_.reduced(count);
  // The library averages floats by a factor, integers by a division at the end.
  const bool isFactor = op_ == ncclAvg && type_.isFloat;
  const double inFloat = static_cast<double>(1.0F / static_cast<float>(ranks_));
  const double factor = type_.type == ncclFloat64 ? 1.0 / ranks_ : inFloat;
  for (const bool isBackward : {false, true}) {
    for (size_t i = 0; i < count; i++) {
      double result = 0;
      for (int k = 0; k < ranks_; k++) {
        const int rank = isBackward ? ranks_ - 1 - k : k;
        double next = element(inputs[static_cast<size_t>(rank)], i);
        if (op_ == kMulSum) next = rounded(next * scalarOf(rank));
        if (isFactor) next = rounded(next * factor);
        result = k == 0 ? next : combine(result, next);
      }
      if (op_ == ncclAvg && !isFactor) result = std::trunc(result / ranks_);
      const uint64_t distance =
          type_.isFloat
              ? ulpDistance(type_, encode(type_, result), loadBits(type_, expected.data() + i * type_.bytes))
              : static_cast<uint64_t>(std::fabs(result - element(expected, i)));
      ASSERT_LE(distance, pattern_.toleranceUlp()) << i << ": " << result << " " << element(expected, i);
    }
  }
}

TEST(Pattern, DiffersBetweenRanksSeedsAndPlaces) {
  const ElementType& type = elementType(ncclFloat32);
  const Pattern pattern(type, ncclSum, 3, 1);
  const Stream zero = pattern.input(0);
  EXPECT_NE(zero, pattern.input(1));
  EXPECT_NE(zero, Pattern(type, ncclSum, 3, 2).input(0));
  std::vector<std::byte> moved(1024 * 4);
  fillFromStream(type, zero, 4096, 1024, moved.data());
  EXPECT_GT(countWrong(type, zero, 0, 1024, moved.data(), 0), 1000U);
}

TEST(Pattern, WhatIsOnlyMovedHasAllBits) {
  const ElementType& type = elementType(ncclFloat8e5m2);
  const Stream stream = Pattern(type, kNoOperator, 3, 1).input(1);
  std::set<std::byte> values(stream.begin(), stream.end());
  EXPECT_EQ(values.size(), 256U);
}

TEST(Pattern, AMissingOrDoubledRankIsNoticedAlmostEverywhere) {
  const ElementType& type = elementType(ncclFloat32);
  const Pattern pattern(type, ncclSum, 2, 1);
  // "Rank 1 was left out": the result is rank 0's input.
  const Stream expected = pattern.reduced(1000);
  EXPECT_GT(countWrong(type, expected, 0, 1000, pattern.input(0).data(), 0), 990U);
}

TEST(Verify, FindsEveryFlippedBit) {
  const ElementType& type = elementType(ncclBfloat16);
  const Stream expected = Pattern(type, ncclSum, 4, 5).reduced(kPeriod);
  const size_t count = kPeriod + 1000;
  std::vector<std::byte> data(count * 2);
  fillFromStream(type, expected, 17, count, data.data());
  EXPECT_EQ(countWrong(type, expected, 17, count, data.data(), 0), 0U);
  for (const size_t at : {size_t{0}, size_t{5001}, 2 * kPeriod - 1, data.size() - 1}) {
    for (int bit = 0; bit < 8; bit++) {
      data[at] ^= std::byte{1} << bit;
      EXPECT_EQ(countWrong(type, expected, 17, count, data.data(), 0), 1U) << at << " " << bit;
      data[at] ^= std::byte{1} << bit;
    }
  }
}

TEST(Verify, ToleratesTwoUlpsOnlyWhereAllowed) {
  const ElementType& type = elementType(ncclFloat32);
  const Stream expected = Pattern(type, ncclAvg, 3, 5).reduced(kPeriod);
  Stream data = expected;
  storeBits(type, loadBits(type, data.data() + 40) + 2, data.data() + 40);
  EXPECT_EQ(countWrong(type, expected, 0, kPeriod, data.data(), 2), 0U);
  EXPECT_EQ(countWrong(type, expected, 0, kPeriod, data.data(), 0), 1U);
  storeBits(type, loadBits(type, data.data() + 40) + 1, data.data() + 40);
  EXPECT_EQ(countWrong(type, expected, 0, kPeriod, data.data(), 2), 1U);
}

TEST(Verify, HashesTellBuffersApart) {
  std::vector<std::byte> data(1003, std::byte{7});
  const uint64_t before = hashBytes(data.data(), data.size());
  EXPECT_EQ(hashBytes(data.data(), data.size()), before);
  EXPECT_NE(hashBytes(data.data(), data.size() - 1), before);
  for (const size_t at : {size_t{0}, size_t{500}, size_t{1002}}) {
    data[at] ^= std::byte{1};
    EXPECT_NE(hashBytes(data.data(), data.size()), before) << at;
    data[at] ^= std::byte{1};
  }
}

}  // namespace
}  // namespace topoccl::bench
