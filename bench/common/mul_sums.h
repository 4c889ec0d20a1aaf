// The operators of -o mulsum: one for each local rank, each with the scalar of its rank.
#pragma once

#include <map>
#include <vector>

#include "common/elements.h"

namespace topoccl::bench {

class MulSums {
 public:
  // comms: of ranks firstRank, firstRank + 1, ...; not owned, and must outlive this.
  MulSums(std::vector<ncclComm_t> comms, int firstRank) : comms_(std::move(comms)), firstRank_(firstRank) {}
  ~MulSums();
  MulSums(const MulSums&) = delete;
  MulSums& operator=(const MulSums&) = delete;

  // In the order of the ranks; made when first asked for.
  const std::vector<ncclRedOp_t>& of(const ElementType& type);

 private:
  std::vector<ncclComm_t> comms_;
  int firstRank_;
  std::map<ncclDataType_t, std::vector<ncclRedOp_t>> made_;
};

}  // namespace topoccl::bench
