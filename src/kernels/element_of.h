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
    case DataType::Int32:
      return function(Int32());
    case DataType::Float32:
      return function(Float32());
    case DataType::Float64:
      return function(Float64());
    case DataType::Bfloat16:
      return function(Bfloat16());
    default:
      return decltype(function(Float32())){};
  }
}

}  // namespace topoccl
