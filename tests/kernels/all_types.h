// Every element type and operator, for tests that go through all of them.
#pragma once

#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <tuple>

#include "kernels/types.h"

namespace topoccl {

inline constexpr DataType kTypes[] = {DataType::Int8,     DataType::Uint8,      DataType::Int32,
                                      DataType::Uint32,   DataType::Int64,      DataType::Uint64,
                                      DataType::Float16,  DataType::Float32,    DataType::Float64,
                                      DataType::Bfloat16, DataType::Float8e4m3, DataType::Float8e5m2};
inline constexpr Operator kOperators[] = {Operator::Sum, Operator::Prod, Operator::Max, Operator::Min,
                                          Operator::Avg};
static_assert(std::size(kTypes) == kDataTypeCount && std::size(kOperators) == kOperatorCount);

using TypeAndOperator = std::tuple<DataType, Operator>;

inline std::string caseName(const testing::TestParamInfo<TypeAndOperator>& info) {
  return std::string(name(std::get<0>(info.param))) + "_" + name(std::get<1>(info.param));
}

}  // namespace topoccl
