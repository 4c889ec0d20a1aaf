// What fuzz targets share (docs/fuzz.md). A target is a file with one LLVMFuzzerTestOneInput; it is linked
// with libFuzzer, which makes inputs up, or with replay.cc, which runs those that are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace topoccl::fuzz {

inline std::string_view inputOf(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Ends the program, in every build, unless `holds`.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

// A number below `limit`, from the next byte of the input.
inline uint8_t below(ByteReader& input, unsigned limit) {
  return static_cast<uint8_t>(input.number<uint8_t>() % limit);
}

// The next bytes of the input, as many as its next byte says or as there are.
inline std::string_view some(ByteReader& input) {
  const size_t wanted = input.number<uint8_t>();
  return input.raw(wanted < input.left() ? wanted : input.left());
}

}  // namespace topoccl::fuzz
