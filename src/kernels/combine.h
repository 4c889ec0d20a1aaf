// The loop that moves and reduces data, over a pack type and a Group: one source for hosts and GPUs.
//
// A Pack is a few elements that move together. It has
//   Element, kLanes, Half        the row of elements.h; elements per pack, a power of two; a pack of half
//                                as many
//   Value, Packed                the elements as reduced (wide), and as stored
//   load(p) -> Value             from memory aligned to a byte
//   pack(Value) -> Packed        rounds once; all NaNs become the one quiet NaN
//   store(Packed, p)             to memory aligned to a byte
//   stream(Packed, p)            the same with non-temporal stores, p aligned to the pack
//   set(Wide) -> Value, add, multiply, divide(Value, uint32_t), bitAnd, bitOr, greater, equal, isNan, select
//                                as far as the operators used ask for them; none may be contracted
//
// A group cuts a range like this (kBlock = 4 packs in flight per thread, here 2 threads, A and B):
//   | A B A B A B A B | A B A B A B A B | A B | A B | A b      last pack partial: Half, Half::Half, ... lanes
// Element i is read and written by one thread, reads first: outputs may be the same memory as inputs.
#if defined(TOPOCCL_KERNELS_COMBINE_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOPOCCL_KERNELS_COMBINE_H
#undef TOPOCCL_KERNELS_COMBINE_H
#else
#define TOPOCCL_KERNELS_COMBINE_H
#endif

#include <cstdint>

#include "kernels/combine_args.h"
#include "kernels/group.h"
#include "kernels/operators.h"
#include "kernels/per_target.h"

TOPOCCL_BEGIN_KERNELS

inline constexpr int kBlock = 4;

// The arguments, with the pointers that nearly every call needs copied out of the caller's arrays: a store
// might change those arrays for all the compiler knows, and would have them read again for every pack.
struct CombineJob {
  const void* const* inputs;
  void* const* outputs;
  const uint8_t* input0;
  const uint8_t* input1;
  uint8_t* output0;
  uint32_t inputCount;
  uint32_t outputCount;
  uint64_t scaledInputs;
  uint64_t streamedOutputs;
  ScaleValue scale;
  uint32_t divisor;

  TOPOCCL_KERNEL explicit CombineJob(const CombineArgs& args)
      : inputs(args.inputs),
        outputs(args.outputs),
        input0(static_cast<const uint8_t*>(args.inputs[0])),
        input1(static_cast<const uint8_t*>(args.inputs[args.inputCount > 1 ? 1 : 0])),
        output0(static_cast<uint8_t*>(args.outputs[0])),
        inputCount(args.inputCount),
        outputCount(args.outputCount),
        scaledInputs(args.scaledInputs),
        streamedOutputs(args.streamedOutputs),
        scale(args.scale),
        divisor(args.divisor) {}

  TOPOCCL_KERNEL const uint8_t* input(uint32_t i) const {
    return i == 1 ? input1 : static_cast<const uint8_t*>(inputs[i]);
  }
  TOPOCCL_KERNEL uint8_t* output(uint32_t i) const { return static_cast<uint8_t*>(outputs[i]); }
  TOPOCCL_KERNEL bool scaled(uint32_t i) const { return (scaledInputs >> (i < 63 ? i : 63) & 1) != 0; }
  TOPOCCL_KERNEL bool streamed(uint32_t i) const { return i < 64 && (streamedOutputs >> i & 1) != 0; }
};

// kPacks packs of one thread, the same distance apart.
template <class Pack, int kPacks>
struct PackBlock {
  typename Pack::Value values[kPacks];

  TOPOCCL_KERNEL void load(const uint8_t* from, uint64_t distance) {
    TOPOCCL_UNROLL
    for (int i = 0; i < kPacks; ++i) values[i] = Pack::load(from + static_cast<uint64_t>(i) * distance);
  }

  TOPOCCL_KERNEL void multiply(typename Pack::Element::Wide factor) {
    const auto all = Pack::set(factor);
    TOPOCCL_UNROLL
    for (int i = 0; i < kPacks; ++i) values[i] = Pack::multiply(values[i], all);
  }

  template <class Op>
  TOPOCCL_KERNEL void reduce(const PackBlock& other) {
    TOPOCCL_UNROLL
    for (int i = 0; i < kPacks; ++i) values[i] = Op::template apply<Pack>(values[i], other.values[i]);
  }

  // As if it had been stored and loaded again.
  TOPOCCL_KERNEL void roundToStored() {
    TOPOCCL_UNROLL
    for (int i = 0; i < kPacks; ++i) values[i] = Pack::unpack(Pack::pack(values[i]));
  }

  TOPOCCL_KERNEL void divide(uint32_t divisor) {
    TOPOCCL_UNROLL
    for (int i = 0; i < kPacks; ++i) values[i] = Pack::divide(values[i], divisor);
  }
};

// The same packs, ready to be stored any number of times.
template <class Pack, int kPacks>
struct PackedBlock {
  typename Pack::Packed values[kPacks];

  TOPOCCL_KERNEL explicit PackedBlock(const PackBlock<Pack, kPacks>& block) {
    TOPOCCL_UNROLL
    for (int i = 0; i < kPacks; ++i) values[i] = Pack::pack(block.values[i]);
  }

  TOPOCCL_KERNEL void store(uint8_t* to, uint64_t distance) const {
    TOPOCCL_UNROLL
    for (int i = 0; i < kPacks; ++i) Pack::store(values[i], to + static_cast<uint64_t>(i) * distance);
  }

  TOPOCCL_KERNEL void stream(uint8_t* to, uint64_t distance) const {
    TOPOCCL_UNROLL
    for (int i = 0; i < kPacks; ++i) Pack::stream(values[i], to + static_cast<uint64_t>(i) * distance);
  }

  template <bool kStreamed>
  TOPOCCL_KERNEL void put(bool streamed, uint8_t* to, uint64_t distance) const {
    if constexpr (kStreamed) {
      if (streamed) return stream(to, distance);
    }
    store(to, distance);
  }
};

// Multiplies an input that asks for it. A rank that reads its own input and a peer that got the product
// through a slot must go on with the same bits: types that are wider in registers round here.
template <class Pack, class Op, int kPacks>
TOPOCCL_KERNEL void scale(const CombineJob& job, uint32_t index, PackBlock<Pack, kPacks>& block) {
  using Element = typename Pack::Element;
  if constexpr (Op::kSums) {
    if (job.scaledInputs == 0 || !job.scaled(index)) return;  // for most calls the same cheap question
    block.multiply(job.scale.as<typename Element::Wide>());
    if constexpr (sizeof(typename Element::Stored) != sizeof(typename Element::Wide)) block.roundToStored();
  }
}

// Combines kPacks packs; the first begins at element `at`, each next one `stride` elements further.
template <class Pack, class Op, bool kStreamed, int kPacks>
TOPOCCL_KERNEL void combineBlock(const CombineJob& job, uint64_t at, uint64_t stride) {
  using Element = typename Pack::Element;
  constexpr uint64_t kBytes = sizeof(typename Element::Stored);
  const uint64_t offset = at * kBytes;
  const uint64_t distance = stride * kBytes;
  PackBlock<Pack, kPacks> result;
  result.load(job.input0 + offset, distance);
  scale<Pack, Op>(job, 0, result);
  for (uint32_t i = 1; i < job.inputCount; ++i) {
    PackBlock<Pack, kPacks> next;
    next.load(job.input(i) + offset, distance);
    scale<Pack, Op>(job, i, next);
    result.template reduce<Op>(next);
  }
  if constexpr (Op::kSums && !Element::kFloating) {
    if (job.divisor != 1) result.divide(job.divisor);
  }
  const PackedBlock<Pack, kPacks> packed(result);
  packed.template put<kStreamed>(job.streamed(0), job.output0 + offset, distance);
  for (uint32_t i = 1; i < job.outputCount; ++i)
    packed.template put<kStreamed>(job.streamed(i), job.output(i) + offset, distance);
}

// Fewer elements than a pack: halves, quarters, ... of it, so that no byte outside the range is touched and
// every element goes through the same instructions.
template <class Pack, class Op>
TOPOCCL_KERNEL void combineHalves(const CombineJob& job, uint64_t at, uint64_t count) {
  if constexpr (Pack::kLanes > 1) {
    using Half = typename Pack::Half;
    if (count >= Half::kLanes) {
      combineBlock<Half, Op, false, 1>(job, at, 0);
      at += Half::kLanes;
      count -= Half::kLanes;
    }
    combineHalves<Half, Op>(job, at, count);
  }
}

// The same, once for all places that call it: it is most of the code.
template <class Pack, class Op>
TOPOCCL_HOST_DEVICE __attribute__((noinline)) void combineRest(const CombineJob& job, uint64_t at,
                                                               uint64_t count) {
  combineHalves<Pack, Op>(job, at, count);
}

// This thread's share of elements [begin, end). Does not sync.
template <class Pack, class Op, bool kStreamed, Group Threads>
TOPOCCL_KERNEL void combineRange(const CombineJob& job, uint64_t begin, uint64_t end, const Threads& group) {
  const uint64_t stride = Pack::kLanes * group.size();
  const uint64_t mine = Pack::kLanes * group.rank();
  for (; end - begin >= kBlock * stride; begin += kBlock * stride)
    combineBlock<Pack, Op, kStreamed, kBlock>(job, begin + mine, stride);
  // One pack more as long as a whole one is left for this thread, then its part of the last.
  for (begin += mine; begin < end && end - begin >= Pack::kLanes; begin += stride)
    combineBlock<Pack, Op, kStreamed, 1>(job, begin, 0);
  if (begin < end) combineRest<Pack, Op>(job, begin, end - begin);
}

// A single input that nothing is done to is copied bit for bit, whatever its type.
template <class Element, class Op>
TOPOCCL_KERNEL bool isCopy(const CombineArgs& args) {
  if (args.inputCount != 1) return false;
  return !Op::kSums || ((args.scaledInputs & 1) == 0 && (Element::kFloating || args.divisor == 1));
}

TOPOCCL_END_KERNELS

#endif
