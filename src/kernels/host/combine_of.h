// Host functions of one element type each, which are compiled in files of their own, side by side.
#pragma once

#include "kernels/combine_args.h"
#include "kernels/elements.h"

namespace topoccl {

// The function for `op` with the best vector instructions this processor has; nullptr for no operator of
// ours.
template <class Element>
CombineFunction hostCombineOf(Operator op);

template <>
CombineFunction hostCombineOf<Int8>(Operator op);
template <>
CombineFunction hostCombineOf<Uint8>(Operator op);
template <>
CombineFunction hostCombineOf<Int32>(Operator op);
template <>
CombineFunction hostCombineOf<Uint32>(Operator op);
template <>
CombineFunction hostCombineOf<Int64>(Operator op);
template <>
CombineFunction hostCombineOf<Uint64>(Operator op);
template <>
CombineFunction hostCombineOf<Float16>(Operator op);
template <>
CombineFunction hostCombineOf<Float32>(Operator op);
template <>
CombineFunction hostCombineOf<Float64>(Operator op);
template <>
CombineFunction hostCombineOf<Bfloat16>(Operator op);
template <>
CombineFunction hostCombineOf<Float8e4m3>(Operator op);
template <>
CombineFunction hostCombineOf<Float8e5m2>(Operator op);

}  // namespace topoccl
