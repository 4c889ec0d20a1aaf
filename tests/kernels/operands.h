// Inputs and outputs of one combine() call, at chosen offsets, with bytes around the outputs watched.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "kernels/combine_args.h"

namespace topoccl {

// Values that tempt an implementation to go wrong: zeros of both signs, infinities, NaNs quiet and signalling
// with payloads, subnormals, numbers one rounding away from each other, the extremes of integers.
template <class Bits>
const std::vector<Bits>& awkward();

template <>
inline const std::vector<uint32_t>& awkward<uint32_t>() {
  static const std::vector<uint32_t> all = {
      0x00000000u, 0x80000000u, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc00000u, 0x7fc12345u, 0xff812345u,
      0x7f800001u, 0x00000001u, 0x807fffffu, 0x00800000u, 0x7f7fffffu, 0xff7fffffu, 0x3f800000u, 0xbf800000u,
      0x3f800001u, 0x7fffffffu, 0x80000001u, 0xffffffffu, 0x3f808000u, 0x3f818000u, 0x00007fffu, 0x00018000u};
  return all;
}

template <>
inline const std::vector<uint64_t>& awkward<uint64_t>() {
  static const std::vector<uint64_t> all = {
      0x0000000000000000u, 0x8000000000000000u, 0x7ff0000000000000u, 0xfff0000000000000u, 0x7ff8000000000000u,
      0xfff8123456789abcu, 0x7ff0000000000001u, 0x0000000000000001u, 0x800fffffffffffffu, 0x7fefffffffffffffu,
      0xffefffffffffffffu, 0x3ff0000000000000u, 0xbff0000000000000u, 0x3ff0000000000001u};
  return all;
}

template <>
inline const std::vector<uint16_t>& awkward<uint16_t>() {
  static const std::vector<uint16_t> all = {
      0x0000, 0x8000, 0x7f80, 0xff80, 0x7fc0, 0xffc0, 0x7fd5, 0xff81, 0x7f81, 0x0001, 0x807f, 0x0080, 0x7f7f,
      0xff7f, 0x3f80, 0xbf80, 0x3f81, 0x3b80, 0x3b00, 0x7fff,  // bfloat16's
      0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7c01, 0xfdff, 0x83ff, 0x0400, 0x7bff, 0xfbff, 0x3c00, 0xbc00, 0x3c01};
  return all;
}

template <>
inline const std::vector<uint8_t>& awkward<uint8_t>() {
  static const std::vector<uint8_t> all = {0x00, 0x80, 0x7f, 0xff, 0x7e, 0xfe, 0x7d, 0x7c, 0xfc, 0x7b, 0xfb,
                                           0x78, 0x01, 0x81, 0x03, 0x04, 0x07, 0x08, 0x38, 0xb8, 0x3c, 0xbc};
  return all;
}

// One element in `rarity` is awkward, the others are `base` with the bits in `varying` drawn at random.
template <class Bits>
void fill(uint8_t* to, size_t bytes, Bits base, Bits varying, uint64_t rarity, std::mt19937_64& random) {
  for (size_t i = 0; i + sizeof(Bits) <= bytes; i += sizeof(Bits)) {
    Bits value = base ^ static_cast<Bits>(random() & varying);
    if (random() % rarity == 0) value = awkward<Bits>()[random() % awkward<Bits>().size()];
    std::memcpy(to + i, &value, sizeof(value));
  }
}

// Floats lie in [0.5, 2) or so, of both signs; integers anywhere.
inline void fill(DataType type, uint8_t* to, size_t bytes, uint64_t rarity, std::mt19937_64& random) {
  switch (type) {
    case DataType::Float32:
      return fill<uint32_t>(to, bytes, 0x3f800000u, 0x80ffffffu, rarity, random);
    case DataType::Float64:
      return fill<uint64_t>(to, bytes, 0x3ff0000000000000u, 0x801fffffffffffffu, rarity, random);
    case DataType::Bfloat16:
      return fill<uint16_t>(to, bytes, 0x3f80, 0x80ff, rarity, random);
    case DataType::Float16:
      return fill<uint16_t>(to, bytes, 0x3c00, 0x87ff, rarity, random);
    case DataType::Float8e4m3:
      return fill<uint8_t>(to, bytes, 0x38, 0x8f, rarity, random);
    case DataType::Float8e5m2:
      return fill<uint8_t>(to, bytes, 0x3c, 0x87, rarity, random);
    case DataType::Int8:
    case DataType::Uint8:
      return fill<uint8_t>(to, bytes, 0, 0xff, rarity, random);
    case DataType::Int32:
    case DataType::Uint32:
      return fill<uint32_t>(to, bytes, 0, 0xffffffffu, rarity, random);
    case DataType::Int64:
    case DataType::Uint64:
      return fill<uint64_t>(to, bytes, 0, 0xffffffffffffffffu, rarity, random);
  }
}

// What a call is made of; the buffers are Operands'.
struct CallShape {
  DataType type = DataType::Float32;
  uint64_t count = 0;
  uint32_t inputs = 1;
  uint32_t outputs = 1;
  size_t inputOffset = 0;   // input i starts this * (i + 1) bytes past a multiple of 64
  size_t outputOffset = 0;  // output i likewise
  bool inPlace = false;     // output i is input i, as far as there are both
};

class Operands {
 public:
  Operands(const CallShape& shape, uint64_t seed) : bytes_(shape.count * elementBytes(shape.type)) {
    std::mt19937_64 random(seed);
    const uint64_t rarity = 4 + shape.inputs;  // else the sum of many inputs would always be a NaN
    for (uint32_t i = 0; i < shape.inputs; ++i) {
      inputs_.push_back(buffer(shape.inputOffset * (i + 1)));
      fill(shape.type, static_cast<uint8_t*>(inputs_.back()), bytes_, rarity, random);
    }
    for (uint32_t i = 0; i < shape.outputs; ++i) {
      const bool aliased = shape.inPlace && i < shape.inputs;
      outputs_.push_back(aliased ? inputs_[i] : buffer(shape.outputOffset * (i + 1)));
    }
    args_.inputs = const_cast<const void* const*>(inputs_.data());
    args_.inputCount = shape.inputs;
    args_.outputs = outputs_.data();
    args_.outputCount = shape.outputs;
    args_.count = shape.count;
  }

  CombineArgs& args() { return args_; }
  const uint8_t* output(uint32_t i) const { return static_cast<const uint8_t*>(outputs_[i]); }
  size_t bytes() const { return bytes_; }

  // Whether the bytes next to every buffer are as they were.
  bool marginsIntact() const {
    for (const auto& [data, begin] : buffers_) {
      for (size_t i = 0; i < kMargin; ++i) {
        if (data[begin - 1 - i] != kMark || data[begin + bytes_ + i] != kMark) return false;
      }
    }
    return true;
  }

 private:
  static constexpr size_t kMargin = 64;
  static constexpr uint8_t kMark = 0xa5;

  struct Buffer {
    std::unique_ptr<uint8_t[]> data;
    size_t begin;
  };

  uint8_t* buffer(size_t offset) {
    const size_t room = kMargin + 64 + offset % 64 + bytes_ + kMargin;
    auto data = std::make_unique<uint8_t[]>(room);
    std::memset(data.get(), kMark, room);
    const size_t aligned = (64 - reinterpret_cast<uintptr_t>(data.get() + kMargin) % 64) % 64;
    const size_t begin = kMargin + aligned + offset % 64;
    buffers_.push_back({std::move(data), begin});
    return buffers_.back().data.get() + begin;
  }

  size_t bytes_;
  std::vector<Buffer> buffers_;
  std::vector<void*> inputs_;
  std::vector<void*> outputs_;
  CombineArgs args_;
};

}  // namespace topoccl
