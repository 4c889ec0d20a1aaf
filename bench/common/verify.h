// Filling buffers from streams and comparing buffers with streams.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/elements.h"
#include "common/pattern.h"

namespace topoccl::bench {

// Writes `count` elements of the stream, from its element `first` on.
void fillFromStream(const ElementType& type, const Stream& stream, size_t first, size_t count, std::byte* to);

// How many of `count` elements are further than `toleranceUlp` from the stream's (from element `first` on).
// With tolerance 0 every bit counts.
uint64_t countWrong(const ElementType& type, const Stream& stream, size_t first, size_t count,
                    const std::byte* data, uint64_t toleranceUlp);

// Equal bytes give equal hashes, others almost surely different ones.
uint64_t hashBytes(const std::byte* data, size_t bytes);

}  // namespace topoccl::bench
