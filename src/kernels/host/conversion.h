// Vectors between memory and arithmetic: elements.h's widenBits and narrowBits, lane by lane the same bits.
// Read once per target, after hwy/highway.h.
#if defined(TOPOCCL_KERNELS_HOST_CONVERSION_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOPOCCL_KERNELS_HOST_CONVERSION_H
#undef TOPOCCL_KERNELS_HOST_CONVERSION_H
#else
#define TOPOCCL_KERNELS_HOST_CONVERSION_H
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "kernels/elements.h"
#include "kernels/per_target.h"

TOPOCCL_BEGIN_KERNELS

namespace hn = hwy::HWY_NAMESPACE;

// The rows whose types differ are specialised.
template <class Element>
struct HostConversion {
  template <class D>
  TOPOCCL_KERNEL static hn::Vec<D> widen(D, hn::Vec<D> stored) {
    return stored;
  }

  template <class D>
  TOPOCCL_KERNEL static hn::Vec<D> narrow(D d, hn::Vec<D> wide) {
    if constexpr (Element::kFloating) {
      using Wide = typename Element::Wide;
      const hn::RebindToUnsigned<D> bits;
      return hn::IfThenElse(hn::IsNaN(wide), hn::BitCast(d, hn::Set(bits, quietNanBits(Wide{}))), wide);
    } else {
      return wide;
    }
  }
};

template <>
struct HostConversion<Bfloat16> {
  template <class D>
  TOPOCCL_KERNEL static hn::Vec<D> widen(D d, hn::Vec<hn::Rebind<uint16_t, D>> stored) {
    const hn::Rebind<uint32_t, D> bits;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(bits, stored)));
  }

  template <class D>
  TOPOCCL_KERNEL static hn::Vec<hn::Rebind<uint16_t, D>> narrow(D d, hn::Vec<D> wide) {
    const hn::Rebind<uint32_t, D> u32;
    const hn::Rebind<uint16_t, D> u16;
    const auto bits = hn::BitCast(u32, wide);
    const auto lowestKept = hn::And(hn::ShiftRight<16>(bits), hn::Set(u32, 1));
    const auto rounded = hn::Add(bits, hn::Add(hn::Set(u32, 0x7fff), lowestKept));
    const auto nan = hn::BitCast(d, hn::Set(u32, quietNanBits(float{})));
    const auto settled = hn::IfThenElse(hn::IsNaN(wide), nan, hn::BitCast(d, rounded));
    return hn::TruncateTo(u16, hn::ShiftRight<16>(hn::BitCast(u32, settled)));
  }
};

// Signed integers throughout: magnitudes are positive, and old processors compare nothing else.
template <class Stored, int kExponentBits, Stored kInfinity, Stored kNan, Stored kOverflow>
struct HostConversion<SmallFloat<Stored, kExponentBits, kInfinity, kNan, kOverflow>> {
  using Element = SmallFloat<Stored, kExponentBits, kInfinity, kNan, kOverflow>;
  static constexpr int kDroppedBits = Element::kDroppedBits;

  template <class D>
  using Integers = hn::Vec<hn::Rebind<int32_t, D>>;

  template <class D>
  TOPOCCL_KERNEL static Integers<D> constant(D, uint32_t bits) {
    return hn::Set(hn::Rebind<int32_t, D>(), static_cast<int32_t>(bits));
  }

  template <class D>
  TOPOCCL_KERNEL static hn::Vec<D> widen(D d, hn::Vec<hn::Rebind<Stored, D>> stored) {
    const hn::Rebind<int32_t, D> i32;
    const auto bits = hn::PromoteTo(i32, stored);
    const auto magnitude = hn::And(bits, constant(d, Element::kMagnitude));
    const auto sign = hn::ShiftLeft<32 - Element::kBits>(hn::Xor(bits, magnitude));
    const auto subnormal = hn::Mul(hn::ConvertTo(d, magnitude), hn::Set(d, Element::kSubnormalUnit));
    const auto normal = hn::Add(hn::ShiftLeft<kDroppedBits>(magnitude), constant(d, Element::kRebias));
    const auto number = hn::IfThenElse(hn::Lt(magnitude, constant(d, Element::kSmallestNormal)),
                                       hn::BitCast(i32, subnormal), normal);
    return hn::BitCast(d, hn::Or(sign, special(d, magnitude, number)));
  }

  template <class D>
  TOPOCCL_KERNEL static hn::Vec<hn::Rebind<Stored, D>> narrow(D d, hn::Vec<D> wide) {
    const hn::Rebind<int32_t, D> i32;
    const auto bits = hn::BitCast(i32, wide);
    const auto magnitude = hn::And(bits, constant(d, 0x7fffffff));
    const auto sign =
        hn::And(hn::ShiftRight<32 - Element::kBits>(bits), constant(d, Element::kMagnitude + 1));
    const auto rounded = hn::Or(sign, round(d, hn::Min(magnitude, constant(d, Element::kWideOverflow))));
    const auto settled =
        hn::IfThenElse(hn::Gt(magnitude, constant(d, 0x7f800000)), constant(d, Element::kNan), rounded);
    return store(d, settled);
  }

 private:
  // Infinities and NaNs; signs of NaNs don't matter.
  template <class D>
  TOPOCCL_KERNEL static Integers<D> special(D d, Integers<D> magnitude, Integers<D> number) {
    const auto infinity = constant(d, Element::kInfinity);
    const auto wideNan = constant(d, quietNanBits(float{}));
    const auto wideInfinity = Element::kHasInfinity ? constant(d, 0x7f800000) : wideNan;
    const auto settled = hn::IfThenElse(hn::Eq(magnitude, infinity), wideInfinity, number);
    return Element::kHasInfinity ? hn::IfThenElse(hn::Gt(magnitude, infinity), wideNan, settled) : settled;
  }

  template <class D>
  TOPOCCL_KERNEL static Integers<D> round(D d, Integers<D> magnitude) {
    const hn::Rebind<int32_t, D> i32;
    const auto unit = constant(d, Element::kWideSubnormalUnit);
    const auto sum = hn::Add(hn::BitCast(d, magnitude), hn::BitCast(d, unit));
    const auto subnormal = hn::Sub(hn::BitCast(i32, sum), unit);
    const auto lowestKept = hn::And(hn::ShiftRight<kDroppedBits>(magnitude), constant(d, 1));
    const auto almostHalf = constant(d, (1u << (kDroppedBits - 1)) - 1 - Element::kRebias);
    const auto normal = hn::ShiftRight<kDroppedBits>(hn::Add(hn::Add(magnitude, almostHalf), lowestKept));
    return hn::IfThenElse(hn::Lt(magnitude, constant(d, Element::kWideSmallestNormal)), subnormal, normal);
  }

  template <class D>
  TOPOCCL_KERNEL static hn::Vec<hn::Rebind<Stored, D>> store(D, Integers<D> bits) {
    const hn::Rebind<Stored, D> stored;
    if constexpr (sizeof(Stored) == 1)
      return hn::DemoteTo(stored, bits);  // where there is no shuffle of bytes, truncation is slow
    else
      return hn::TruncateTo(stored, hn::BitCast(hn::Rebind<uint32_t, D>(), bits));
  }
};

TOPOCCL_END_KERNELS

#endif
