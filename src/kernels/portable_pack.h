// The pack of GPUs, and of hosts where nothing is known of vectors: lanes in an array.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "kernels/elements.h"
#include "kernels/per_target.h"
#include "kernels/types.h"

namespace topoccl {

// One number's arithmetic: not contracted, not saturated, not trapping.
template <class Wide>
struct PortableMath {
  static constexpr bool kFloating = std::is_floating_point_v<Wide>;
  using Bits = UnsignedOf<sizeof(Wide)>;

  TOPOCCL_KERNEL static Wide add(Wide a, Wide b) {
    if constexpr (kFloating)
      return a + b;
    else
      return static_cast<Wide>(static_cast<Bits>(static_cast<Bits>(a) + static_cast<Bits>(b)));
  }

  TOPOCCL_KERNEL static Wide multiply(Wide a, Wide b) {
    if constexpr (kFloating)
      return multiplyFloating(a, b);
    else
      return static_cast<Wide>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }

  // nvcc would fuse a plain product into the addition that follows.
  TOPOCCL_KERNEL static Wide multiplyFloating(Wide a, Wide b) {
#if defined(__CUDA_ARCH__)
    if constexpr (sizeof(Wide) == 4)
      return __fmul_rn(a, b);
    else
      return __dmul_rn(a, b);
#else
    return a * b;
#endif
  }

  // Towards zero, by magnitudes: the most negative number has one, and a divisor may exceed its type.
  TOPOCCL_KERNEL static Wide divide(Wide a, uint32_t divisor) {
    if constexpr (std::is_unsigned_v<Wide>) {
      return static_cast<Wide>(a / divisor);
    } else {
      const auto bits = static_cast<Bits>(a);
      const auto magnitude = a < 0 ? static_cast<Bits>(Bits{0} - bits) : bits;
      const auto quotient = static_cast<Bits>(magnitude / divisor);
      return static_cast<Wide>(a < 0 ? static_cast<Bits>(Bits{0} - quotient) : quotient);
    }
  }

  TOPOCCL_KERNEL static Wide bitAnd(Wide a, Wide b) {
    return __builtin_bit_cast(Wide,
                              static_cast<Bits>(__builtin_bit_cast(Bits, a) & __builtin_bit_cast(Bits, b)));
  }

  TOPOCCL_KERNEL static Wide bitOr(Wide a, Wide b) {
    return __builtin_bit_cast(Wide,
                              static_cast<Bits>(__builtin_bit_cast(Bits, a) | __builtin_bit_cast(Bits, b)));
  }

  // A NaN, which does not equal itself, becomes the one quiet NaN.
  TOPOCCL_KERNEL static Wide settle(Wide a) {
    if constexpr (kFloating)
      // NOLINTNEXTLINE(misc-redundant-expression)
      return a == a ? a : __builtin_bit_cast(Wide, quietNanBits(Wide{}));
    else
      return a;
  }
};

// Between memory and arithmetic.
template <class Element>
struct PortableConversion {
  using Stored = typename Element::Stored;
  using Wide = typename Element::Wide;
  static constexpr bool kSame = std::same_as<Stored, Wide>;

  TOPOCCL_KERNEL static Wide widen(Stored stored) {
    if constexpr (kSame)
      return stored;
    else
      return __builtin_bit_cast(float, Element::widenBits(stored));
  }
  TOPOCCL_KERNEL static Stored narrow(Wide wide) {
    if constexpr (kSame)
      return PortableMath<Wide>::settle(wide);
    else
      return Element::narrowBits(__builtin_bit_cast(uint32_t, wide));
  }
};

// `kAlignment` bytes is what every pointer is aligned to. Aligned to the whole pack, up to 16 bytes, a load
// is one instruction on a GPU; aligned to nothing, memory is read byte by byte where the processor must.
template <class Element_, int kLanes_, int kAlignment = 1>
struct PortablePack {
  using Element = Element_;
  using Stored = typename Element::Stored;
  using Wide = typename Element::Wide;
  using Math = PortableMath<Wide>;
  using Half = PortablePack<Element, (kLanes_ > 1 ? kLanes_ / 2 : 1),
                            (kAlignment > static_cast<int>(sizeof(Stored)) ? kAlignment / 2 : kAlignment)>;
  static constexpr uint64_t kLanes = kLanes_;

  struct Value {
    Wide lane[kLanes_];
  };
  struct alignas(kAlignment > static_cast<int>(alignof(Stored)) ? kAlignment : alignof(Stored)) Packed {
    Stored lane[kLanes_];
  };
  struct Mask {
    bool lane[kLanes_];
  };

  TOPOCCL_KERNEL static Value load(const uint8_t* from) {
    Packed packed;
    __builtin_memcpy(&packed, __builtin_assume_aligned(from, kAlignment), sizeof(packed));
    return unpack(packed);
  }

  TOPOCCL_KERNEL static Packed pack(Value value) {
    Packed packed;
    TOPOCCL_UNROLL
    for (int i = 0; i < kLanes_; ++i) packed.lane[i] = PortableConversion<Element>::narrow(value.lane[i]);
    return packed;
  }

  TOPOCCL_KERNEL static Value unpack(Packed packed) {
    Value value;
    TOPOCCL_UNROLL
    for (int i = 0; i < kLanes_; ++i) value.lane[i] = PortableConversion<Element>::widen(packed.lane[i]);
    return value;
  }

  TOPOCCL_KERNEL static void store(Packed packed, uint8_t* to) {
    __builtin_memcpy(__builtin_assume_aligned(to, kAlignment), &packed, sizeof(packed));
  }
  TOPOCCL_KERNEL static void stream(Packed packed, uint8_t* to) { store(packed, to); }

  TOPOCCL_KERNEL static Value set(Wide a) {
    Value value;
    TOPOCCL_UNROLL
    for (int i = 0; i < kLanes_; ++i) value.lane[i] = a;
    return value;
  }

  TOPOCCL_KERNEL static Value add(Value a, Value b) {
    TOPOCCL_UNROLL
    for (int i = 0; i < kLanes_; ++i) a.lane[i] = Math::add(a.lane[i], b.lane[i]);
    return a;
  }

  TOPOCCL_KERNEL static Value multiply(Value a, Value b) {
    TOPOCCL_UNROLL
    for (int i = 0; i < kLanes_; ++i) a.lane[i] = Math::multiply(a.lane[i], b.lane[i]);
    return a;
  }

  TOPOCCL_KERNEL static Value divide(Value a, uint32_t divisor) {
    TOPOCCL_UNROLL
    for (int i = 0; i < kLanes_; ++i) a.lane[i] = Math::divide(a.lane[i], divisor);
    return a;
  }

  TOPOCCL_KERNEL static Value bitAnd(Value a, Value b) {
    TOPOCCL_UNROLL
    for (int i = 0; i < kLanes_; ++i) a.lane[i] = Math::bitAnd(a.lane[i], b.lane[i]);
    return a;
  }

  TOPOCCL_KERNEL static Value bitOr(Value a, Value b) {
    TOPOCCL_UNROLL
    for (int i = 0; i < kLanes_; ++i) a.lane[i] = Math::bitOr(a.lane[i], b.lane[i]);
    return a;
  }

  TOPOCCL_KERNEL static Mask greater(Value a, Value b) {
    Mask mask;
    TOPOCCL_UNROLL
    for (int i = 0; i < kLanes_; ++i) mask.lane[i] = a.lane[i] > b.lane[i];
    return mask;
  }

  TOPOCCL_KERNEL static Mask equal(Value a, Value b) {
    Mask mask;
    TOPOCCL_UNROLL
    for (int i = 0; i < kLanes_; ++i) mask.lane[i] = a.lane[i] == b.lane[i];
    return mask;
  }

  TOPOCCL_KERNEL static Mask isNan(Value a) {
    Mask mask;
    TOPOCCL_UNROLL
    for (int i = 0; i < kLanes_; ++i) mask.lane[i] = !(a.lane[i] == a.lane[i]);
    return mask;
  }

  TOPOCCL_KERNEL static Value select(Mask mask, Value yes, Value no) {
    TOPOCCL_UNROLL
    for (int i = 0; i < kLanes_; ++i) no.lane[i] = mask.lane[i] ? yes.lane[i] : no.lane[i];
    return no;
  }
};

}  // namespace topoccl
