#include "common/verify.h"

#include <algorithm>
#include <cstring>

namespace topoccl::bench {
namespace {

// Calls body(stream bytes, buffer offset in bytes, elements) for each stretch that does not wrap.
template <class Body>
void eachStretch(const ElementType& type, const Stream& stream, size_t first, size_t count, Body&& body) {
  for (size_t done = 0; done < count;) {
    const size_t at = (first + done) % kPeriod;
    const size_t stretch = std::min(count - done, kPeriod - at);
    body(stream.data() + at * type.bytes, done * type.bytes, stretch);
    done += stretch;
  }
}

uint64_t countFar(const ElementType& type, const std::byte* expected, const std::byte* data, size_t count,
                  uint64_t toleranceUlp) {
  uint64_t wrong = 0;
  for (size_t i = 0; i < count; i++) {
    const uint64_t want = loadBits(type, expected + i * type.bytes);
    const uint64_t have = loadBits(type, data + i * type.bytes);
    if (want == have) continue;
    wrong += toleranceUlp == 0 || ulpDistance(type, want, have) > toleranceUlp ? 1 : 0;
  }
  return wrong;
}

}  // namespace

void fillFromStream(const ElementType& type, const Stream& stream, size_t first, size_t count,
                    std::byte* to) {
  eachStretch(type, stream, first, count, [&](const std::byte* from, size_t offset, size_t stretch) {
    std::memcpy(to + offset, from, stretch * type.bytes);
  });
}

uint64_t countWrong(const ElementType& type, const Stream& stream, size_t first, size_t count,
                    const std::byte* data, uint64_t toleranceUlp) {
  uint64_t wrong = 0;
  eachStretch(type, stream, first, count, [&](const std::byte* from, size_t offset, size_t stretch) {
    if (std::memcmp(from, data + offset, stretch * type.bytes) == 0) return;
    wrong += countFar(type, from, data + offset, stretch, toleranceUlp);
  });
  return wrong;
}

uint64_t hashBytes(const std::byte* data, size_t bytes) {
  uint64_t hash = bytes;
  const auto absorb = [&hash](uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 32;
  };
  size_t at = 0;
  for (uint64_t word = 0; at + sizeof word <= bytes; at += sizeof word) {
    std::memcpy(&word, data + at, sizeof word);
    absorb(word);
  }
  uint64_t tail = 0;
  std::memcpy(&tail, data + at, bytes - at);
  absorb(tail);
  return hash;
}

}  // namespace topoccl::bench
