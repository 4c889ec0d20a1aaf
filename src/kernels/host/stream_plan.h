// Which outputs can be streamed, and from which element on.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/combine_args.h"

namespace topoccl {

struct StreamPlan {
  uint64_t outputs = 0;  // as CombineArgs::streamedOutputs: the outputs that are aligned after `head`
  uint64_t head = 0;     // elements to store plainly first
};

// Non-temporal stores need whole aligned packs. The first output asked for decides where packs begin; those
// that would not be aligned there, or never are, are stored plainly.
inline StreamPlan planStreams(const CombineArgs& args, uint64_t packBytes, uint64_t elementBytes) {
  const auto phase = [&](int output) {
    return reinterpret_cast<uintptr_t>(args.outputs[output]) % packBytes;
  };
  uint64_t asked = args.streamedOutputs;
  if (args.outputCount < 64) asked &= (uint64_t{1} << args.outputCount) - 1;
  StreamPlan plan;
  uint64_t common = 0;
  for (; asked != 0; asked &= asked - 1) {
    const int output = std::countr_zero(asked);
    if (phase(output) % elementBytes != 0) continue;
    if (plan.outputs == 0) common = phase(output);
    if (phase(output) == common) plan.outputs |= uint64_t{1} << output;
  }
  if (plan.outputs != 0) plan.head = std::min(args.count, (packBytes - common) % packBytes / elementBytes);
  return plan;
}

}  // namespace topoccl
