// combine() with the portable pack: what a CUDA block calls.
#pragma once

#include <cstdint>

#include "kernels/combine.h"
#include "kernels/portable_pack.h"

namespace topoccl {

// Bytes that one thread moves at once where pointers allow it: a GPU's widest access.
inline constexpr uint64_t kPortablePackBytes = 16;

// What all of a call's pointers have in common, modulo kPortablePackBytes.
struct PointerPhase {
  uint64_t phase;  // of the first output
  bool same;       // all have that phase
  uint64_t bits;   // any bit set in any phase
};

TOPOCCL_HOST_DEVICE inline PointerPhase pointerPhase(const CombineArgs& args) {
  PointerPhase all{reinterpret_cast<uintptr_t>(args.outputs[0]) % kPortablePackBytes, true, 0};
  const auto take = [&all](const void* pointer) {
    const uint64_t phase = reinterpret_cast<uintptr_t>(pointer) % kPortablePackBytes;
    all.same = all.same && phase == all.phase;
    all.bits |= phase;
  };
  for (uint32_t i = 0; i < args.inputCount; ++i) take(args.inputs[i]);
  for (uint32_t i = 0; i < args.outputCount; ++i) take(args.outputs[i]);
  return all;
}

// Whole packs where pointers allow it, after as many elements as it takes to get there; else element by
// element; else, where not even elements are aligned, byte by byte.
template <class Element, class Op, Group Threads>
TOPOCCL_HOST_DEVICE void portableLoop(const CombineArgs& args, const Threads& group) {
  constexpr int kBytes = sizeof(typename Element::Stored);
  constexpr int kPackBytes = static_cast<int>(kPortablePackBytes);
  const CombineJob job(args);
  const PointerPhase all = pointerPhase(args);
  if (all.bits % kBytes != 0)
    return combineRange<PortablePack<Element, 1>, Op, false>(job, 0, args.count, group);
  const uint64_t toAligned = (kPortablePackBytes - all.phase) % kPortablePackBytes / kBytes;
  const uint64_t head = all.same && toAligned < args.count ? toAligned : args.count;
  combineRange<PortablePack<Element, 1, kBytes>, Op, false>(job, 0, head, group);
  combineRange<PortablePack<Element, kPackBytes / kBytes, kPackBytes>, Op, false>(job, head, args.count,
                                                                                  group);
}

// Called by all threads of the group with the same arguments; when it returns, all outputs are written.
template <class Element, class Op, Group Threads>
TOPOCCL_HOST_DEVICE void portableCombine(const CombineArgs& args, const Threads& group) {
  if (args.count != 0 && args.outputCount != 0) {
    if (isCopy<Element, Op>(args))
      portableLoop<Raw<UnsignedOf<sizeof(typename Element::Stored)>>, First>(args, group);
    else
      portableLoop<Element, Op>(args, group);
  }
  group.sync();
}

}  // namespace topoccl
