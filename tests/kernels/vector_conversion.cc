#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "../tests/kernels/vector_conversion.cc"
#include "kernels/host/targets.h"
// After targets.h:
#include "kernels/elements.h"
#include "kernels/host/pack.h"
#include "kernels/vector_conversion.h"

HWY_BEFORE_NAMESPACE();
namespace topoccl {
namespace HWY_NAMESPACE {

template <class Element>
using WidePack = HostPack<Raw<uint32_t>, HostPack<Element>::kLanes>;

void narrowAll(DataType type, const uint32_t* wide, size_t count, void* stored) {
  withElement(type, [&](auto row) {
    using Element = decltype(row);
    if constexpr (std::same_as<typename Element::Wide, float>) {
      using Pack = HostPack<Element>;
      const typename Pack::D floats;
      auto* to = static_cast<uint8_t*>(stored);
      for (size_t i = 0; i < count; i += Pack::kLanes) {
        const auto bits = WidePack<Element>::load(reinterpret_cast<const uint8_t*>(wide + i));
        Pack::store(Pack::pack(hn::BitCast(floats, bits)), to + i * sizeof(typename Element::Stored));
      }
    }
    return 0;
  });
}

void widenAll(DataType type, const void* stored, size_t count, uint32_t* wide) {
  withElement(type, [&](auto row) {
    using Element = decltype(row);
    if constexpr (std::same_as<typename Element::Wide, float>) {
      using Pack = HostPack<Element>;
      const typename WidePack<Element>::D bits;
      const auto* from = static_cast<const uint8_t*>(stored);
      for (size_t i = 0; i < count; i += Pack::kLanes) {
        const auto value = Pack::load(from + i * sizeof(typename Element::Stored));
        WidePack<Element>::store(hn::BitCast(bits, value), reinterpret_cast<uint8_t*>(wide + i));
      }
    }
    return 0;
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace topoccl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace topoccl {

HWY_EXPORT(narrowAll);
HWY_EXPORT(widenAll);

void narrowVectors(DataType type, const uint32_t* wide, size_t count, void* stored) {
  HWY_DYNAMIC_DISPATCH(narrowAll)(type, wide, count, stored);
}

void widenVectors(DataType type, const void* stored, size_t count, uint32_t* wide) {
  HWY_DYNAMIC_DISPATCH(widenAll)(type, stored, count, wide);
}

}  // namespace topoccl
#endif
