// combine() with the portable pack: what a CUDA block calls.
#pragma once

#include <cstdint>

#include "kernels/combine.h"
#include "kernels/portable_pack.h"

namespace topoccl {

// Bytes that one thread moves at once where pointers allow it: a GPU's widest access.
inline constexpr uint64_t kPortablePackBytes = 16;

// All pointers' common distance past a multiple of kPortablePackBytes, or that many bytes if they differ.
TOPOCCL_HOST_DEVICE inline uint64_t commonPhase(const CombineArgs& args) {
  const uint64_t phase = reinterpret_cast<uintptr_t>(args.outputs[0]) % kPortablePackBytes;
  bool same = true;
  for (uint32_t i = 0; i < args.inputCount; ++i)
    same = same && reinterpret_cast<uintptr_t>(args.inputs[i]) % kPortablePackBytes == phase;
  for (uint32_t i = 1; i < args.outputCount; ++i)
    same = same && reinterpret_cast<uintptr_t>(args.outputs[i]) % kPortablePackBytes == phase;
  return same ? phase : kPortablePackBytes;
}

template <class Element, class Op, class Mode, Group Threads>
TOPOCCL_HOST_DEVICE void portableLoop(const CombineArgs& args, const Threads& group) {
  constexpr uint64_t kBytes = sizeof(typename Element::Stored);
  constexpr int kLanes = static_cast<int>(kPortablePackBytes / kBytes);
  using Single = PortablePack<Element, 1>;
  using Wide = PortablePack<Element, kLanes, static_cast<int>(kPortablePackBytes)>;
  const CombineJob job(args);
  const uint64_t phase = commonPhase(args);
  if (phase % kBytes != 0 || phase == kPortablePackBytes)
    return combineRange<Single, Op, Mode>(job, 0, args.count, group);
  const uint64_t toAligned = (kPortablePackBytes - phase) % kPortablePackBytes / kBytes;
  const uint64_t head = toAligned < args.count ? toAligned : args.count;
  combineRange<Single, Op, Mode>(job, 0, head, group);
  combineRange<Wide, Op, Mode>(job, head, args.count, group);
}

// Called by all threads of the group with the same arguments; when it returns, all outputs are written.
template <class Element, class Op, Group Threads>
TOPOCCL_HOST_DEVICE void portableCombine(const CombineArgs& args, const Threads& group) {
  if (args.count != 0 && args.outputCount != 0) {
    using Plain = CombineMode<false, false>;
    if (isCopy<Element>(args)) {
      CombineArgs bytes = args;
      bytes.count = args.count * sizeof(typename Element::Stored);
      bytes.divisor = 1;
      portableLoop<Byte, First, Plain>(bytes, group);
    } else if constexpr (Element::kFloating) {
      if (args.scaledInputs != 0)
        portableLoop<Element, Op, CombineMode<true, false>>(args, group);
      else
        portableLoop<Element, Op, Plain>(args, group);
    } else {
      portableLoop<Element, Op, Plain>(args, group);
    }
  }
  group.sync();
}

}  // namespace topoccl
