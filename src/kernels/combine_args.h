// The arguments of combine(), the one function that moves and reduces data.
#pragma once

#include <cstdint>

#include "kernels/scale_value.h"
#include "kernels/types.h"

namespace topoccl {

// outputs[0..outputCount) = inputs[0] op inputs[1] op ... : element by element, reduced from left to right.
// Each input element is read before any output element at the same index is written, so an output may be
// the same memory as an input (never a shifted overlap). Pointers need only the alignment of a byte.
struct CombineArgs {
  const void* const* inputs = nullptr;
  uint32_t inputCount = 0;  // at least 1
  void* const* outputs = nullptr;
  uint32_t outputCount = 0;  // may be 0: nothing is done
  uint64_t count = 0;        // elements
  // Only sums look at these three. Bit i: multiply input i by `scale` on load (pre-multiplied sum; average of
  // floating types), rounded to the type; integers wrap. Inputs from 64 on follow bit 63.
  uint64_t scaledInputs = 0;
  ScaleValue scale;
  // Divide the result (average of integer types, truncating towards zero) before storing; 1 = no division.
  uint32_t divisor = 1;
  // Bit i: store output i with non-temporal stores, where the host has them. The caller fences.
  uint64_t streamedOutputs = 0;
};

// Reduces on the calling thread with the best vector instructions this processor has.
using CombineFunction = void (*)(const CombineArgs&);

// For every type and operator; nullptr for other values. Avg sums like Sum; scale and divisor make it an
// average.
CombineFunction hostCombine(DataType type, Operator op);

// Copies the one input to all outputs, bit for bit; `count` counts bytes.
void hostCopy(const CombineArgs& args);

}  // namespace topoccl
