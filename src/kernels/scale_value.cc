#include "kernels/scale_value.h"

#include <cstring>

#include "kernels/elements.h"
#include "kernels/portable_pack.h"

namespace topoccl {

ScaleValue averageScale(DataType type, uint32_t ranks) {
  return withElement(type, [&](auto element) {
    using Wide = typename decltype(element)::Wide;
    return ScaleValue::of(static_cast<Wide>(1.0 / ranks));
  });
}

ScaleValue elementScale(DataType type, const void* element) {
  return withElement(type, [&](auto row) {
    using Element = decltype(row);
    typename Element::Stored stored;
    std::memcpy(&stored, element, sizeof(stored));
    return ScaleValue::of(PortableConversion<Element>::widen(stored));
  });
}

}  // namespace topoccl
