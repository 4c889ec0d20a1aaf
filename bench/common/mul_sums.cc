#include "common/mul_sums.h"

#include "common/failure.h"
#include "common/pattern.h"

namespace topoccl::bench {

MulSums::~MulSums() {
  for (const auto& [type, operators] : made_) {
    for (size_t i = 0; i < operators.size(); i++) (void)ncclRedOpDestroy(operators[i], comms_[i]);
  }
}

const std::vector<ncclRedOp_t>& MulSums::of(const ElementType& type) {
  std::vector<ncclRedOp_t>& operators = made_[type.type];
  for (size_t i = operators.size(); i < comms_.size(); i++) {
    uint64_t scalar = encode(type, scalarOf(firstRank_ + static_cast<int>(i)));  // little endian
    ncclRedOp_t made = ncclSum;
    check(ncclRedOpCreatePreMulSum(&made, &scalar, type.type, ncclScalarHostImmediate, comms_[i]));
    operators.push_back(made);
  }
  return operators;
}

}  // namespace topoccl::bench
