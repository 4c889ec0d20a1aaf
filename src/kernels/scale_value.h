// What scaled inputs are multiplied by: a number of an element type's `Wide` (elements.h). As bits, since no
// one number type holds an integer of 64 bits as well as a double.
#pragma once

#include <cstdint>

#include "base/portable.h"
#include "kernels/types.h"

namespace topoccl {

struct ScaleValue {
  uint64_t bits = 0;  // zeros above the bits of a smaller Wide

  template <class Wide>
  TOPOCCL_HOST_DEVICE static constexpr ScaleValue of(Wide value) {
    return {__builtin_bit_cast(UnsignedOf<sizeof(Wide)>, value)};
  }
  template <class Wide>
  TOPOCCL_HOST_DEVICE constexpr Wide as() const {
    return __builtin_bit_cast(Wide, static_cast<UnsignedOf<sizeof(Wide)>>(bits));
  }
};

// 1 / ranks: what makes a sum of a floating type an average. Integers divide the result instead.
ScaleValue averageScale(DataType type, uint32_t ranks);

// The scalar of a pre-multiplied sum: one element of `type`, at any address.
ScaleValue elementScale(DataType type, const void* element);

}  // namespace topoccl
