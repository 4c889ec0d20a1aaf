// The conversions of vectors by themselves, for the chosen instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/types.h"

namespace topoccl {

// How many elements a call takes: a multiple of this.
inline constexpr size_t kConversionMultiple = 64;

// Between bits of floats and elements of a type that is narrower than its arithmetic.
void narrowVectors(DataType type, const uint32_t* wide, size_t count, void* stored);
void widenVectors(DataType type, const void* stored, size_t count, uint32_t* wide);

}  // namespace topoccl
