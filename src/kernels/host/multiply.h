// Products of vectors, also of those widths that processors can't multiply. Read once per target, after
// hwy/highway.h.
#if defined(TOPOCCL_KERNELS_HOST_MULTIPLY_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOPOCCL_KERNELS_HOST_MULTIPLY_H
#undef TOPOCCL_KERNELS_HOST_MULTIPLY_H
#else
#define TOPOCCL_KERNELS_HOST_MULTIPLY_H
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "kernels/per_target.h"
#include "kernels/portable_pack.h"

TOPOCCL_BEGIN_KERNELS

namespace hn = hwy::HWY_NAMESPACE;

// Bytes by pairs: the upper byte of a 16-bit number does not reach the lower one of a product.
template <class D>
TOPOCCL_KERNEL hn::Vec<D> multiplyBytes(D d, hn::Vec<D> a, hn::Vec<D> b) {
  const hn::Repartition<uint16_t, D> u16;
  const auto a16 = hn::BitCast(u16, a);
  const auto b16 = hn::BitCast(u16, b);
  const auto even = hn::And(hn::Mul(a16, b16), hn::Set(u16, 0x00ff));
  const auto odd = hn::ShiftLeft<8>(hn::Mul(hn::ShiftRight<8>(a16), hn::ShiftRight<8>(b16)));
  return hn::BitCast(d, hn::Or(even, odd));
}

// By halves a = a1 2^32 + a0: a0 b0 + (a1 b0 + a0 b1) 2^32, and whatever lies beyond 2^64 is lost.
template <class D>
TOPOCCL_KERNEL hn::Vec<D> multiplyByHalves(D d, hn::Vec<D> a, hn::Vec<D> b) {
  const hn::RebindToUnsigned<D> u64;
  const hn::Repartition<uint32_t, D> u32;
  const auto a0 = hn::BitCast(u32, a);
  const auto b0 = hn::BitCast(u32, b);
  const auto a1 = hn::BitCast(u32, hn::ShiftRight<32>(hn::BitCast(u64, a)));
  const auto b1 = hn::BitCast(u32, hn::ShiftRight<32>(hn::BitCast(u64, b)));
  const auto cross = hn::Add(hn::MulEven(a1, b0), hn::MulEven(a0, b1));
  return hn::BitCast(d, hn::Add(hn::MulEven(a0, b0), hn::ShiftLeft<32>(cross)));
}

template <class D>
TOPOCCL_KERNEL hn::Vec<D> hostMultiply(D d, hn::Vec<D> a, hn::Vec<D> b) {
  using Number = hn::TFromD<D>;
  if constexpr (hwy::IsFloat<Number>() || sizeof(Number) == 4)
    return hn::Mul(a, b);
  else if constexpr (hn::MaxLanes(D()) == 1)
    return hn::Set(d, PortableMath<Number>::multiply(hn::GetLane(a), hn::GetLane(b)));
  else if constexpr (sizeof(Number) == 1)
    return multiplyBytes(d, a, b);
  else
    return multiplyByHalves(d, a, b);
}

TOPOCCL_END_KERNELS

#endif
