// Which algorithm and protocol a call uses, and what NCCL_ALGO and NCCL_PROTO leave of them.
#pragma once

#include <cstdint>
#include <string_view>

#include "algorithms/algorithms.h"
#include "schedule/step.h"

namespace topoccl {

struct Choice {
  Algorithm algorithm = Algorithm::Ring;
  Protocol protocol = Protocol::Packet;
  int channels = 1;

  bool operator==(const Choice&) const = default;
};

// What NCCL_ALGO and NCCL_PROTO leave for one collective: bit i = enum value i may be used.
struct ChoiceFilter {
  uint32_t algorithms = UINT32_MAX;
  uint32_t protocols = UINT32_MAX;

  bool allows(const Choice& choice) const;
};

// Reads NCCL_ALGO and NCCL_PROTO as NCCL 2.24 and later do: lists of names, case ignored, separated by
// commas; `^` before a list excludes it; `collective:list` applies to one collective (by either of its
// names), sections are separated by semicolons and an unprefixed section comes first. Known to NCCL_ALGO:
// ring, tree and this library's names; NCCL's collnetdirect, collnetchain, nvls, nvlstree, pat are accepted
// and name nothing here. NCCL_PROTO: packet (LL, LL128: what excludes one of them leaves the other) and bulk
// (Simple). An unprefixed list that leaves nothing of what `collective` has, but something of what there is,
// is not about it: "tree" says nothing about all-gather. Throws InvalidArgument for any other name, and where
// a list about `collective` or about all leaves nothing, naming the setting, its value and what is allowed.
ChoiceFilter parseFilter(Collective collective, std::string_view algo, std::string_view proto);

// One word of a list: the bits of the algorithms or protocols it names, 0 for an unknown one.
uint32_t algorithmBits(std::string_view word);
uint32_t protocolBits(std::string_view word);

}  // namespace topoccl
