// What operators give on values picked by hand, in every instruction set.
#include "kernels/operators.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/combine_args.h"
#include "kernels/targets.h"

namespace topoccl {
namespace {

// One call on arrays of one type.
template <class Number>
std::vector<Number> combineArrays(DataType type, Operator op, const std::vector<std::vector<Number>>& inputs,
                                  const CombineArgs& options = {}) {
  std::vector<Number> out(inputs[0].size());
  std::vector<const void*> pointers;
  for (const auto& input : inputs) pointers.push_back(input.data());
  void* outputs[] = {out.data()};
  CombineArgs args = options;
  args.inputs = pointers.data();
  args.inputCount = static_cast<uint32_t>(pointers.size());
  args.outputs = outputs;
  args.outputCount = 1;
  args.count = out.size();
  hostCombine(type, op)(args);
  return out;
}

template <class Number>
bool sameBits(const std::vector<Number>& a, const std::vector<Number>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Number)) == 0;
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
const std::vector<std::vector<float>> kExtremes = {{kNan, 1.0f, kNan, 0.0f, -0.0f, -0.0f, -INFINITY, 2.0f},
                                                   {3.0f, kNan, kNan, -0.0f, 0.0f, -0.0f, kNan, 5.0f}};

TEST(Max, PrefersNumbersToNansAndPlusZeroToMinusZero) {
  forEachTarget([&] {
    EXPECT_TRUE(sameBits(combineArrays(DataType::Float32, Operator::Max, kExtremes),
                         {3.0f, 1.0f, kNan, 0.0f, 0.0f, -0.0f, -INFINITY, 5.0f}));
  });
}

TEST(Min, PrefersNumbersToNansAndMinusZeroToPlusZero) {
  forEachTarget([&] {
    EXPECT_TRUE(sameBits(combineArrays(DataType::Float32, Operator::Min, kExtremes),
                         {3.0f, 1.0f, kNan, -0.0f, -0.0f, -0.0f, -INFINITY, 2.0f}));
  });
}

TEST(Integers, WrapAndCompareByTheirSign) {
  const std::vector<std::vector<uint8_t>> bytes = {{200, 127, 255, 128}, {100, 1, 255, 128}};
  const std::vector<std::vector<uint64_t>> longs = {{1ULL << 63, 0xffffffff00000001u, 3},
                                                    {1ULL << 63, 0x00000001ffffffffu, 0xffffffffffffffffu}};
  forEachTarget([&] {
    for (DataType type : {DataType::Int8, DataType::Uint8}) {
      EXPECT_EQ(combineArrays(type, Operator::Sum, bytes), (std::vector<uint8_t>{44, 128, 254, 0}));
      EXPECT_EQ(combineArrays(type, Operator::Prod, bytes), (std::vector<uint8_t>{32, 127, 1, 0}));
    }
    EXPECT_EQ(combineArrays(DataType::Int8, Operator::Max, bytes),
              (std::vector<uint8_t>{100, 127, 255, 128}));
    EXPECT_EQ(combineArrays(DataType::Uint8, Operator::Max, bytes),
              (std::vector<uint8_t>{200, 127, 255, 128}));
    for (DataType type : {DataType::Int64, DataType::Uint64}) {
      EXPECT_EQ(combineArrays(type, Operator::Prod, longs),
                (std::vector<uint64_t>{0, 0x00000002ffffffffu, 0xfffffffffffffffdu}));
    }
    EXPECT_EQ(combineArrays(DataType::Int64, Operator::Min, longs),
              (std::vector<uint64_t>{1ULL << 63, 0xffffffff00000001u, 0xffffffffffffffffu}));
    EXPECT_EQ(combineArrays(DataType::Uint64, Operator::Min, longs),
              (std::vector<uint64_t>{1ULL << 63, 0x00000001ffffffffu, 3}));
  });
}

// NCCL's rule: the sum of its own type, which may have wrapped, is divided.
template <class Integer>
void expectAverages(DataType type, const std::vector<Integer>& sums, uint32_t divisor,
                    const std::vector<Integer>& expected) {
  CombineArgs options;
  options.divisor = divisor;
  EXPECT_EQ(combineArrays<Integer>(type, Operator::Avg, {sums}, options), expected)
      << name(type) << " / " << divisor;
}

TEST(IntegerAverage, DividesTheWrappedSumTowardsZero) {
  constexpr int32_t kLowest = std::numeric_limits<int32_t>::min();
  constexpr int64_t kLowest64 = std::numeric_limits<int64_t>::min();
  const std::vector<int32_t> in = {-7, 7, kLowest, 2147483647, -1};
  forEachTarget([&] {
    expectAverages<int32_t>(DataType::Int32, in, 2, {-3, 3, kLowest / 2, 1073741823, 0});
    expectAverages<int32_t>(DataType::Int32, in, 0x80000000u, {0, 0, -1, 0, 0});
    expectAverages<int32_t>(DataType::Int32, in, 0xffffffffu, {0, 0, 0, 0, 0});
    expectAverages<uint32_t>(DataType::Uint32, {7, 0xffffffffu, 0x80000000u}, 3,
                             {2, 0x55555555u, 0x2aaaaaaau});
    expectAverages<int8_t>(DataType::Int8, {-128, -7, 127, -1}, 3, {-42, -2, 42, 0});
    expectAverages<int8_t>(DataType::Int8, {-128, -7, 127, -1}, 1000, {0, 0, 0, 0});
    expectAverages<uint8_t>(DataType::Uint8, {255, 128, 7}, 2, {127, 64, 3});
    expectAverages<int64_t>(DataType::Int64, {kLowest64, -7, (1LL << 53) + 1}, 2,
                            {kLowest64 / 2, -3, 1LL << 52});
    expectAverages<int64_t>(DataType::Int64, {kLowest64, -7, (1LL << 53) + 1}, 1000003,
                            {-9223344366821LL, 0, 9007172233LL});
    expectAverages<uint64_t>(DataType::Uint64, {0xffffffffffffffffu, 9}, 3, {0x5555555555555555u, 3});
  });
}

TEST(IntegerAverage, OfTwoInputsWrapsBeforeItDivides) {
  CombineArgs options;
  options.divisor = 2;
  forEachTarget([&] {
    EXPECT_EQ(combineArrays<uint8_t>(DataType::Uint8, Operator::Avg, {{200}, {100}}, options),
              std::vector<uint8_t>{22});
    EXPECT_EQ(combineArrays<int8_t>(DataType::Int8, Operator::Avg, {{100}, {100}}, options),
              std::vector<int8_t>{-28});
  });
}

TEST(ScaledInputs, AreThoseWhoseBitIsSetAndFollowBit63Beyond) {
  constexpr uint32_t kInputs = 70;
  const float one = 1.0f;
  std::vector<const void*> inputs(kInputs, &one);
  float out = 0;
  void* outputs[] = {&out};
  CombineArgs args;
  args.inputs = inputs.data();
  args.inputCount = kInputs;
  args.outputs = outputs;
  args.outputCount = 1;
  args.count = 1;
  args.scale = ScaleValue::of(100.0f);
  forEachTarget([&] {
    args.scaledInputs = 0b110;
    hostCombine(DataType::Float32, Operator::Sum)(args);
    EXPECT_EQ(out, 268.0f);
    args.scaledInputs = uint64_t{1} << 63;
    hostCombine(DataType::Float32, Operator::Sum)(args);
    EXPECT_EQ(out, 763.0f);
  });
}

TEST(ScaleValue, HoldsAnElementAsItIsComputedWith) {
  const int64_t large = (int64_t{1} << 62) + 1;
  EXPECT_EQ(elementScale(DataType::Int64, &large).as<int64_t>(), large);
  const int8_t negative = -3;
  EXPECT_EQ(elementScale(DataType::Int8, &negative).as<int8_t>(), negative);
  const double third = 1.0 / 3;
  EXPECT_EQ(elementScale(DataType::Float64, &third).as<double>(), third);
  struct Case {
    DataType type;
    uint16_t bits;
    float value;
  };
  for (const Case& each :
       {Case{DataType::Float16, 0x3e00, 1.5f}, Case{DataType::Bfloat16, 0x3fc0, 1.5f},
        Case{DataType::Float8e4m3, 0x01, 0x1p-9f}, Case{DataType::Float8e5m2, 0xbe, -1.5f}})
    EXPECT_EQ(elementScale(each.type, &each.bits).as<float>(), each.value) << name(each.type);
}

TEST(ScaleValue, OfAnAverageIsAsExactAsTheArithmetic) {
  EXPECT_EQ(averageScale(DataType::Float64, 3).as<double>(), 1.0 / 3);
  for (DataType type : {DataType::Float32, DataType::Float16, DataType::Bfloat16, DataType::Float8e4m3})
    EXPECT_EQ(averageScale(type, 3).as<float>(), 1.0f / 3) << name(type);
}

}  // namespace
}  // namespace topoccl
