#include "kernels/types.h"

namespace topoccl {

const char* name(DataType type) {
  static constexpr const char* kNames[kDataTypeCount] = {"int8",    "uint8",    "int32",      "uint32",
                                                         "int64",   "uint64",   "float16",    "float32",
                                                         "float64", "bfloat16", "float8e4m3", "float8e5m2"};
  const auto index = static_cast<unsigned>(type);
  return index < kDataTypeCount ? kNames[index] : "unknown type";
}

const char* name(Operator op) {
  static constexpr const char* kNames[kOperatorCount] = {"sum", "prod", "max", "min", "avg"};
  const auto index = static_cast<unsigned>(op);
  return index < kOperatorCount ? kNames[index] : "unknown operator";
}

}  // namespace topoccl
