// The algorithms as rows of one table, per collective: limits and emitter.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "algorithms/algorithms.h"
#include "schedule/step.h"

namespace topoccl {

struct AlgorithmRow {
  Collective collective;
  Algorithm algorithm;
  int maxRanks;  // INT_MAX: no limit
  Schedule (*emit)(const Layout&, int rank, int root);
  // Connections in which one rank is the producer, at most, per channel, of all collectives that share them:
  // decides the slot size.
  uint32_t (*sendConnections)(int ranks);
};

// All of them; those of one collective in the order in which fallbacks are tried.
const std::vector<AlgorithmRow>& algorithmRows();

// Throws InternalError if the collective has no such algorithm.
const AlgorithmRow& row(Collective collective, Algorithm algorithm);

// Bit i: the collective has algorithm i.
uint32_t algorithmsOf(Collective collective);

// As range tables and settings spell them: "ring", "packet", "all_reduce", ...
const char* name(Algorithm algorithm);
const char* name(Protocol protocol);
const char* name(Collective collective);
std::optional<Collective> collectiveNamed(std::string_view name);

// The name NCCL_ALGO knows it by; "" where NCCL has none.
const char* ncclName(Algorithm algorithm);
// As sections of NCCL_ALGO name it: "allreduce", ...
const char* ncclName(Collective collective);

}  // namespace topoccl
