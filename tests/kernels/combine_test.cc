// combine() on hosts: every type, operator and instruction set against the reference, bit for bit.
#include "kernels/combine_args.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/all_types.h"
#include "kernels/guarded.h"
#include "kernels/operands.h"
#include "kernels/reference.h"
#include "kernels/targets.h"

namespace topoccl {
namespace {

// Under sanitizers every so-manieth parameter does.
const bool kReduced = std::getenv("TOPOCCL_TEST_REDUCED") != nullptr;

// Makes a sum an average over `ranks`, the way the executor does.
void average(DataType type, uint32_t ranks, CombineArgs& args) {
  if (isFloating(type)) {
    args.scaledInputs = ~uint64_t{0};
    args.scale = averageScale(type, ranks);
  } else {
    args.divisor = ranks;
  }
}

// The first element that differs, or an empty string.
std::string difference(DataType type, const std::vector<uint8_t>& expected, const uint8_t* actual) {
  const size_t size = elementBytes(type);
  for (size_t i = 0; i * size < expected.size(); ++i) {
    if (std::memcmp(&expected[i * size], actual + i * size, size) == 0) continue;
    uint64_t want = 0;
    uint64_t got = 0;
    std::memcpy(&want, &expected[i * size], size);
    std::memcpy(&got, actual + i * size, size);
    std::ostringstream text;
    text << "element " << i << ": expected bits 0x" << std::hex << want << ", got 0x" << got;
    return text.str();
  }
  return {};
}

class Combine : public testing::TestWithParam<TypeAndOperator> {
 protected:
  DataType type() const { return std::get<0>(GetParam()); }
  Operator op() const { return std::get<1>(GetParam()); }

  void check(CallShape shape, uint64_t seed, uint64_t streamed = 0) {
    shape.type = type();
    Operands operands(shape, seed);
    CombineArgs& args = operands.args();
    if (op() == Operator::Avg) average(type(), 7, args);
    args.streamedOutputs = streamed;
    const std::vector<uint8_t> expected = reference::combine(type(), op(), args);
    hostCombine(type(), op())(args);
    for (uint32_t i = 0; i < shape.outputs; ++i)
      ASSERT_EQ(difference(type(), expected, operands.output(i)), "")
          << "output " << i << ", count " << shape.count << ", inputs " << shape.inputs;
    ASSERT_TRUE(operands.marginsIntact());
  }
};

class CombineSum : public Combine {};
class CombineOther : public Combine {};

using testing::Values;
using testing::ValuesIn;
INSTANTIATE_TEST_SUITE_P(All, Combine, testing::Combine(ValuesIn(kTypes), ValuesIn(kOperators)), caseName);
INSTANTIATE_TEST_SUITE_P(All, CombineSum, testing::Combine(ValuesIn(kTypes), Values(Operator::Sum)),
                         caseName);
INSTANTIATE_TEST_SUITE_P(All, CombineOther,
                         testing::Combine(ValuesIn(kTypes),
                                          Values(Operator::Prod, Operator::Max, Operator::Min)),
                         caseName);

TEST_P(Combine, EqualsTheReferenceForAnyCount) {
  forEachTarget([&] {
    for (uint64_t count = 0; count <= 140; count += kReduced ? 5 : 1) {
      for (uint32_t inputs : {1u, 2u, 3u}) check({.count = count, .inputs = inputs}, count);
    }
    check({.count = 4099, .inputs = 2}, 1);
  });
}

TEST_P(Combine, EqualsTheReferenceForAnyNumberOfInputsAndOutputs) {
  forEachTarget([&] {
    for (uint32_t inputs : {1u, 2u, 5u, 63u, 64u, 65u, 300u}) {
      if (kReduced && inputs > 65) break;
      for (uint32_t outputs : {0u, 1u, 2u, 3u, 70u})
        check({.count = 77, .inputs = inputs, .outputs = outputs}, inputs * 100 + outputs);
    }
  });
}

TEST_P(Combine, TakesBuffersAtAnyByte) {
  forEachTarget([&] {
    for (size_t input = 0; input < 64; input += kReduced ? 15 : 3) {
      for (size_t output : {0u, 1u, 2u, 8u, 33u, 63u}) {
        check({.count = 131, .inputs = 2, .outputs = 2, .inputOffset = input, .outputOffset = output}, input);
        check({.count = 131, .inputs = 1, .outputs = 1, .inputOffset = input, .outputOffset = output}, input);
      }
    }
  });
}

TEST_P(Combine, MayWriteOverItsInputs) {
  forEachTarget([&] {
    for (uint64_t count : {1u, 15u, 64u, 333u}) {
      for (uint32_t inputs : {1u, 2u, 3u}) {
        for (uint32_t outputs : {1u, 3u, 4u})
          check({.count = count, .inputs = inputs, .outputs = outputs, .inPlace = true}, count);
      }
    }
  });
}

TEST_P(Combine, StreamsWhicheverOutputsItCan) {
  forEachTarget([&] {
    for (size_t offset : {0u, 1u, 4u, 8u, 16u, 32u}) {
      for (uint64_t count : {0u, 3u, 40u, 1000u}) {
        for (uint64_t streamed : {uint64_t{1}, uint64_t{2}, uint64_t{5}, ~uint64_t{0}})
          check({.count = count, .inputs = 2, .outputs = 3, .outputOffset = offset}, count, streamed);
        check({.count = count, .inputs = 1, .outputs = 1, .outputOffset = offset}, count, 1);
      }
    }
    check({.count = 100, .inputs = 2, .outputs = 70}, 1, ~uint64_t{0});
  });
}

// Ranks may cut the same buffer differently.
TEST_P(Combine, GivesTheSameBitsHoweverTheRangeIsCut) {
  constexpr uint64_t kCount = 500;
  forEachTarget([&] {
    Operands operands({.type = type(), .count = kCount, .inputs = 4}, 3);
    CombineArgs whole = operands.args();
    if (op() == Operator::Avg) average(type(), 3, whole);
    const std::vector<uint8_t> expected = reference::combine(type(), op(), whole);
    for (uint64_t first : {1u, 7u, 16u, 100u, 499u}) {
      for (const auto& [begin, end] : {std::pair<uint64_t, uint64_t>{0, first}, {first, kCount}}) {
        const size_t skip = begin * elementBytes(type());
        std::vector<const void*> inputs;
        for (uint32_t i = 0; i < whole.inputCount; ++i)
          inputs.push_back(static_cast<const uint8_t*>(whole.inputs[i]) + skip);
        void* output = static_cast<uint8_t*>(whole.outputs[0]) + skip;
        CombineArgs part = whole;
        part.inputs = inputs.data();
        part.outputs = &output;
        part.count = end - begin;
        hostCombine(type(), op())(part);
      }
      ASSERT_EQ(difference(type(), expected, operands.output(0)), "") << "cut at " << first;
    }
  });
}

TEST_P(Combine, TouchesNoByteOutsideItsRanges) {
  const size_t size = elementBytes(type());
  forEachTarget([&] {
    for (uint64_t count = 1; count < 70; count += kReduced ? 3 : 1) {
      for (auto side : {Guarded::Side::Front, Guarded::Side::Back}) {
        const Guarded a(count * size, side);
        const Guarded b(count * size, side);
        const Guarded out(count * size, side);
        const void* inputs[] = {a.data(), b.data()};
        void* outputs[] = {out.data()};
        CombineArgs args;
        args.inputs = inputs;
        args.outputs = outputs;
        args.outputCount = 1;
        args.count = count;
        for (uint64_t streamed : {0u, 1u}) {
          args.streamedOutputs = streamed;
          for (uint32_t inputCount : {1u, 2u}) {
            args.inputCount = inputCount;
            hostCombine(type(), op())(args);
          }
        }
      }
    }
  });
}

// Scalars of the type itself, on some of the inputs or all: a pre-multiplied sum.
TEST_P(CombineSum, MultipliesScaledInputsByAScalarOfTheType) {
  const size_t size = elementBytes(type());
  std::vector<uint8_t> scalars(64 * size);
  std::mt19937_64 random(11);
  fill(type(), scalars.data(), scalars.size(), 4, random);
  forEachTarget([&] {
    for (size_t i = 0; i < scalars.size(); i += kReduced ? 5 * size : size) {
      for (uint64_t scaledInputs : {uint64_t{1}, uint64_t{0b101}, ~uint64_t{0}}) {
        for (uint32_t inputs : {1u, 2u, 3u, 5u}) {
          Operands operands({.type = type(), .count = 77, .inputs = inputs, .inputOffset = 3}, i);
          CombineArgs& args = operands.args();
          args.scaledInputs = scaledInputs;
          args.scale = elementScale(type(), &scalars[i]);
          const std::vector<uint8_t> expected = reference::combine(type(), op(), args);
          hostCombine(type(), op())(args);
          ASSERT_EQ(difference(type(), expected, operands.output(0)), "");
        }
      }
    }
  });
}

TEST_P(CombineOther, LeavesScalesAndDivisorsToSums) {
  Operands operands({.type = type(), .count = 100, .inputs = 2}, 5);
  CombineArgs& args = operands.args();
  const std::vector<uint8_t> expected = reference::combine(type(), op(), args);
  args.scaledInputs = ~uint64_t{0};
  args.divisor = 3;
  hostCombine(type(), op())(args);
  EXPECT_EQ(difference(type(), expected, operands.output(0)), "");
}

// A fault in one element, anywhere, must not pass for correct: what `difference` is for.
TEST(CombineTest, SeesOneWrongBit) {
  Operands operands({.count = 100, .inputs = 2}, 1);
  std::vector<uint8_t> expected = reference::combine(DataType::Float32, Operator::Sum, operands.args());
  hostCombine(DataType::Float32, Operator::Sum)(operands.args());
  EXPECT_EQ(difference(DataType::Float32, expected, operands.output(0)), "");
  expected[397] ^= 1;
  EXPECT_NE(difference(DataType::Float32, expected, operands.output(0)), "");
}

TEST(HostCombine, HasAFunctionForEveryTypeAndOperator) {
  for (DataType type : kTypes) {
    for (Operator op : kOperators) EXPECT_NE(hostCombine(type, op), nullptr) << name(type) << name(op);
  }
  EXPECT_EQ(hostCombine(DataType{99}, Operator::Sum), nullptr);
  EXPECT_EQ(hostCombine(DataType::Float32, Operator{99}), nullptr);
}

// Else "every instruction set" above would be one.
TEST(HostCombine, GivesEachInstructionSetItsOwnFunction) {
  std::set<CombineFunction> functions;
  int64_t vectors = 0;
  forEachTarget([&] {
    functions.insert(hostCombine(DataType::Float32, Operator::Sum));
    vectors |= hwy::SupportedTargets() & (HWY_SSE4 | HWY_AVX2 | HWY_AVX3 | HWY_NEON);
  });
  EXPECT_GE(functions.size(), static_cast<size_t>(std::popcount(static_cast<uint64_t>(vectors))));
  EXPECT_NE(vectors, 0);
}

TEST(HostCopy, CopiesBytesToAllOutputs) {
  forEachTarget([&] {
    for (uint64_t count : {0u, 1u, 3u, 63u, 64u, 65u, 1000u, 100003u}) {
      for (uint64_t streamed : {0u, 3u}) {
        Operands operands({.type = DataType::Float32, .count = count, .outputs = 3, .inputOffset = 5}, count);
        CombineArgs args = operands.args();
        args.count = operands.bytes();
        args.streamedOutputs = streamed;
        hostCopy(args);
        for (uint32_t i = 0; i < 3; ++i)
          ASSERT_EQ(std::memcmp(operands.output(i), args.inputs[0], operands.bytes()), 0);
        ASSERT_TRUE(operands.marginsIntact());
      }
    }
  });
}

}  // namespace
}  // namespace topoccl
