// The pack of hosts: a vector of the instruction set being compiled for, or a power-of-two part of one.
// Read once per target, after hwy/highway.h.
#if defined(TOPOCCL_KERNELS_HOST_PACK_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOPOCCL_KERNELS_HOST_PACK_H
#undef TOPOCCL_KERNELS_HOST_PACK_H
#else
#define TOPOCCL_KERNELS_HOST_PACK_H
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "kernels/host/conversion.h"
#include "kernels/host/multiply.h"
#include "kernels/per_target.h"
#include "kernels/portable_pack.h"

TOPOCCL_BEGIN_KERNELS

namespace hn = hwy::HWY_NAMESPACE;

template <class Element_, uint64_t kLanes_ = hn::MaxLanes(hn::ScalableTag<typename Element_::Wide>())>
struct HostPack {
  using Element = Element_;
  using Stored = typename Element::Stored;
  using Wide = typename Element::Wide;
  using Half = HostPack<Element, (kLanes_ > 1 ? kLanes_ / 2 : 1)>;
  using D = hn::CappedTag<Wide, kLanes_>;
  using DStored = hn::Rebind<Stored, D>;
  using Value = hn::Vec<D>;
  using Packed = hn::Vec<DStored>;
  using Mask = hn::Mask<D>;
  static constexpr uint64_t kLanes = kLanes_;
  static constexpr uint64_t kBytes = kLanes * sizeof(Stored);
  // Below 16 bytes Highway streams more than it should, and loads and stores through Stored*, which the
  // address may be misaligned for: there the bytes go through an array.
  static constexpr bool kFullAccess = kBytes >= 16;

  TOPOCCL_KERNEL static Value load(const uint8_t* from) {
    if constexpr (kFullAccess) {
      return HostConversion<Element>::widen(D(), hn::LoadU(DStored(), reinterpret_cast<const Stored*>(from)));
    } else {
      alignas(16) Stored lanes[kLanes];
      __builtin_memcpy(lanes, from, kBytes);
      return HostConversion<Element>::widen(D(), hn::Load(DStored(), lanes));
    }
  }

  TOPOCCL_KERNEL static Packed pack(Value value) { return HostConversion<Element>::narrow(D(), value); }
  TOPOCCL_KERNEL static Value unpack(Packed packed) { return HostConversion<Element>::widen(D(), packed); }

  TOPOCCL_KERNEL static void store(Packed packed, uint8_t* to) {
    if constexpr (kFullAccess) {
      hn::StoreU(packed, DStored(), reinterpret_cast<Stored*>(to));
    } else {
      alignas(16) Stored lanes[kLanes];
      hn::Store(packed, DStored(), lanes);
      __builtin_memcpy(to, lanes, kBytes);
    }
  }

  TOPOCCL_KERNEL static void stream(Packed packed, uint8_t* to) {
    if constexpr (kFullAccess)
      hn::Stream(packed, DStored(), reinterpret_cast<Stored*>(to));
    else
      store(packed, to);
  }

  TOPOCCL_KERNEL static Value set(Wide a) { return hn::Set(D(), a); }
  TOPOCCL_KERNEL static Value add(Value a, Value b) { return hn::Add(a, b); }
  TOPOCCL_KERNEL static Value multiply(Value a, Value b) { return hostMultiply(D(), a, b); }
  TOPOCCL_KERNEL static Value bitAnd(Value a, Value b) { return hn::And(a, b); }
  TOPOCCL_KERNEL static Value bitOr(Value a, Value b) { return hn::Or(a, b); }
  TOPOCCL_KERNEL static Mask greater(Value a, Value b) { return hn::Gt(a, b); }
  TOPOCCL_KERNEL static Mask equal(Value a, Value b) { return hn::Eq(a, b); }
  TOPOCCL_KERNEL static Mask isNan(Value a) { return hn::IsNaN(a); }
  TOPOCCL_KERNEL static Value select(Mask mask, Value yes, Value no) { return hn::IfThenElse(mask, yes, no); }

  // Lane by lane: processors have no vector division of integers, and only an average's last step asks. Up to
  // 32 bits doubles serve, whose loop compilers turn into vectors: a quotient q = x / d that is no integer
  // lies at least 1 / d from one, and is rounded by at most |q| / 2^53 <= 2^-21 / d.
  TOPOCCL_KERNEL static Value divide(Value a, uint32_t divisor) {
    HWY_ALIGN Wide lanes[kLanes];
    hn::Store(a, D(), lanes);
    for (Wide& lane : lanes) {
      if constexpr (sizeof(Wide) <= 4)
        lane = static_cast<Wide>(static_cast<double>(lane) / static_cast<double>(divisor));
      else
        lane = PortableMath<Wide>::divide(lane, divisor);
    }
    return hn::Load(D(), lanes);
  }
};

TOPOCCL_END_KERNELS

#endif
