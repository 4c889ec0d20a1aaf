// From a DataType to its row of elements.h.
#pragma once

#include "kernels/elements.h"
#include "kernels/types.h"

namespace topoccl {

// function(Int32()), function(Float32()), ... as `type` says; for no type of ours what the function's result
// is by default.
template <class Function>
auto withElement(DataType type, const Function& function) {
  switch (type) {
    case DataType::Int8:
      return function(Int8());
    case DataType::Uint8:
      return function(Uint8());
    case DataType::Int32:
      return function(Int32());
    case DataType::Uint32:
      return function(Uint32());
    case DataType::Int64:
      return function(Int64());
    case DataType::Uint64:
      return function(Uint64());
    case DataType::Float16:
      return function(Float16());
    case DataType::Float32:
      return function(Float32());
    case DataType::Float64:
      return function(Float64());
    case DataType::Bfloat16:
      return function(Bfloat16());
    case DataType::Float8e4m3:
      return function(Float8e4m3());
    case DataType::Float8e5m2:
      return function(Float8e5m2());
  }
  return decltype(function(Float32())){};
}

}  // namespace topoccl
