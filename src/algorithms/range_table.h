// Which algorithm runs: a printable table of ranges, each with an ordered list of choices. The first choice
// that the settings allow and whose algorithm takes that many ranks wins; the others are its fallbacks.
//
//   # collective   ranks   bytes      choices: algorithm/protocol/channels, best first
//   all_reduce     2-2     0-32K      mesh_oneshot/packet/1 ring/packet/1
//   all_reduce     2-*     32K-*      mesh_twoshot/packet/1 ring/packet/1
//
// Ranges include their first value; a byte range excludes its last, a rank range includes it; `*` is no
// limit. K, M and G are powers of 1024. The first row that matches is used. All ranks of a communicator must
// have the same table: they compare hash().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/algorithms.h"
#include "schedule/step.h"

namespace topoccl {

struct Choice {
  Algorithm algorithm = Algorithm::Ring;
  Protocol protocol = Protocol::Packet;
  int channels = 1;

  bool operator==(const Choice&) const = default;
};

// What NCCL_ALGO and NCCL_PROTO leave, per collective: bit i = enum value i may be used.
struct ChoiceFilter {
  uint32_t algorithms = UINT32_MAX;
  uint32_t protocols = UINT32_MAX;

  bool allows(const Choice& choice) const;
};

// Reads NCCL_ALGO and NCCL_PROTO as NCCL 2.24 and later do: lists of names, case ignored, separated by
// commas; `^` before a list excludes it; `collective:list` applies to one collective, sections are separated
// by semicolons and an unprefixed section comes first. Known to NCCL_ALGO: ring, tree and this library's
// names; NCCL's collnetdirect, collnetchain, nvls, nvlstree, pat are accepted and name nothing here.
// NCCL_PROTO: packet (LL, LL128: what excludes one of them leaves the other) and bulk (Simple). Throws
// InvalidArgument for any other name, and where nothing is left for `collective`, naming the setting, its
// value and what is allowed.
ChoiceFilter parseFilter(Collective collective, std::string_view algo, std::string_view proto);

class RangeTable {
 public:
  struct Row {
    Collective collective = Collective::AllReduce;
    int minRanks = 1, maxRanks = 0;       // maxRanks 0: no limit
    uint64_t minBytes = 0, endBytes = 0;  // endBytes 0: no limit
    std::vector<Choice> choices;

    bool operator==(const Row&) const = default;
  };

  // The constants this library was measured with (docs/measurements).
  static RangeTable builtIn();

  // The table in a file. Throws SystemError naming it, or as parse().
  static RangeTable load(const std::string& path);

  // Throws InvalidArgument naming the line, what stands there and what is expected.
  static RangeTable parse(std::string_view text);

  std::string print() const;
  uint64_t hash() const;
  const std::vector<Row>& rows() const { return rows_; }

  // Never fails for filters of parseFilter: where no choice of the row is allowed, any allowed algorithm and
  // protocol that takes that many ranks serves. Throws InvalidUsage when there is none.
  Choice pick(Collective collective, int ranks, uint64_t bytes, const ChoiceFilter& filter) const;

 private:
  std::vector<Row> rows_;
};

}  // namespace topoccl
