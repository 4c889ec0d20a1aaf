// The algorithms as rows of one table: name, limits and emitter.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "algorithms/algorithms.h"
#include "schedule/step.h"

namespace topoccl {

struct AlgorithmRow {
  Algorithm algorithm;
  const char* name;      // as range tables and settings spell it
  const char* ncclName;  // the name NCCL_ALGO knows it by; "" where NCCL has none
  int maxRanks;          // INT_MAX: no limit
  Schedule (*emit)(const Layout&, int rank);
  // Connections in which one rank is the producer, at most, per channel: decides the slot size.
  uint32_t (*sendConnections)(int ranks);
};

// All-reduce, in the order in which fallbacks are tried.
const std::vector<AlgorithmRow>& allReduceAlgorithms();

const AlgorithmRow& row(Algorithm algorithm);
const char* name(Algorithm algorithm);
const char* name(Protocol protocol);
const char* name(Collective collective);

}  // namespace topoccl
