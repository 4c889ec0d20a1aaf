// Element types and reduction operators. Values equal ncclDataType_t's and ncclRedOp_t's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/portable.h"

namespace topoccl {

enum class DataType : uint8_t {
  Int8 = 0,
  Uint8 = 1,
  Int32 = 2,
  Uint32 = 3,
  Int64 = 4,
  Uint64 = 5,
  Float16 = 6,
  Float32 = 7,
  Float64 = 8,
  Bfloat16 = 9,
  Float8e4m3 = 10,
  Float8e5m2 = 11,
};
inline constexpr int kDataTypeCount = 12;

enum class Operator : uint8_t { Sum = 0, Prod = 1, Max = 2, Min = 3, Avg = 4 };
inline constexpr int kOperatorCount = 5;

TOPOCCL_HOST_DEVICE constexpr size_t elementBytes(DataType type) {
  switch (type) {
    case DataType::Int8:
    case DataType::Uint8:
    case DataType::Float8e4m3:
    case DataType::Float8e5m2:
      return 1;
    case DataType::Float16:
    case DataType::Bfloat16:
      return 2;
    case DataType::Int32:
    case DataType::Uint32:
    case DataType::Float32:
      return 4;
    case DataType::Int64:
    case DataType::Uint64:
    case DataType::Float64:
      return 8;
  }
  return 0;
}

constexpr bool isFloating(DataType type) {
  switch (type) {
    case DataType::Float16:
    case DataType::Float32:
    case DataType::Float64:
    case DataType::Bfloat16:
    case DataType::Float8e4m3:
    case DataType::Float8e5m2:
      return true;
    default:
      return false;
  }
}

// The unsigned integer of so many bytes.
template <size_t kBytes>
using UnsignedOf = std::conditional_t<
    kBytes == 8, uint64_t,
    std::conditional_t<kBytes == 4, uint32_t, std::conditional_t<kBytes == 2, uint16_t, uint8_t>>>;

// "float32", "bfloat16", ... and "sum", "prod", ...: as messages and logs print them.
const char* name(DataType type);
const char* name(Operator op);

}  // namespace topoccl
