// Which algorithm runs: a printable table of ranges, each with an ordered list of choices. The first choice
// that the settings allow and whose algorithm takes that many ranks wins; the others are its fallbacks.
//
//   # collective   ranks   bytes      choices: algorithm/protocol/channels, best first
//   all_reduce     2-2     0-32K      mesh_oneshot/packet/1 ring/packet/1
//   all_reduce     2-*     32K-*      mesh_twoshot/packet/1 ring/packet/1
//
// Bytes are those of the larger of the call's two buffers. Ranges include their first value; a byte range
// excludes its last, a rank range includes it; `*` is no limit. K, M and G are powers of 1024. The first row
// that matches is used. All ranks of a communicator must have the same table: they compare hash().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/choice.h"
#include "schedule/step.h"

namespace topoccl {

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

  // Throws InvalidArgument naming where the text is from, the line, which part of it is wrong, what stands
  // there and what is allowed.
  static RangeTable parse(std::string_view text, std::string_view origin = "TOPOCCL_RANGE_TABLE");

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
