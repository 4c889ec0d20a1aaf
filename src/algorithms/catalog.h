// The algorithms as rows of one table, per collective: limits and emitter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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
// The name NCCL_ALGO knows it by; "" where NCCL has none.
const char* ncclName(Algorithm algorithm);

// By our name or NCCL's ("allreduce"), in any case.
std::optional<Collective> collectiveNamed(std::string_view name);

// For messages: "all_reduce, broadcast, ..."; and what one collective has, "ring, tree, ...".
std::string collectiveNames();
std::string algorithmNames(Collective collective);

}  // namespace topoccl
