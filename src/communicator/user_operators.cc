#include "communicator/user_operators.h"

#include <atomic>

#include "base/error.h"

namespace topoccl {

namespace {

// `instead`: what else it may be.
[[noreturn]] void refuse(int op, const std::string& instead) {
  throw Error(Code::InvalidArgument,
              concat("op is ", op, "; it must be ", instead,
                     "of ncclRedOpCreatePreMulSum on this communicator and not destroyed"));
}

}  // namespace

int UserOperators::create(DataType type, const void* scalar, bool deferred) {
  static std::atomic<int> next{kOperatorCount};
  const int op = next++;
  const std::scoped_lock lock(mutex_);
  rows_[op] = deferred ? Row{type, scalar, {}} : Row{type, nullptr, elementScale(type, scalar)};
  return op;
}

void UserOperators::destroy(int op) {
  const std::scoped_lock lock(mutex_);
  if (op >= 0 && op < kOperatorCount)
    throw Error(Code::InvalidArgument,
                concat("op is ", op, ", which is built in (", name(static_cast<Operator>(op)),
                       ") and can't be destroyed; it must be of ncclRedOpCreatePreMulSum"));
  if (rows_.erase(op) == 0) refuse(op, "");
}

Reduction UserOperators::reduction(int op, DataType type) const {
  if (op >= 0 && op < kOperatorCount) return {static_cast<Operator>(op), false, {}, nullptr};
  const std::scoped_lock lock(mutex_);
  const auto found = rows_.find(op);
  if (found == rows_.end())
    refuse(op, concat("in 0..", kOperatorCount - 1, " (ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg) or "));
  const Row& row = found->second;
  if (row.type != type)
    throw Error(Code::InvalidArgument, concat("op ", op, " was created for datatype ", name(row.type),
                                              "; the call's is ", name(type)));
  return {Operator::Sum, true, row.scale, row.scalar};
}

}  // namespace topoccl
