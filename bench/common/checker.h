// The exact check: fills the buffers with a pattern, makes one call, compares every element.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/board.h"
#include "common/local_ranks.h"
#include "common/pattern.h"

namespace topoccl::bench {

// A bit of a result to flip before it is compared: proves that the check notices. The element after the last
// one lies in the guards.
struct InjectedFault {
  int rank;
  uint64_t element;
  int bit;
};
// From TOPOCCL_BENCH_INJECT=RANK:ELEMENT:BIT; nothing if it is not set.
std::optional<InjectedFault> injectedFault();

struct CheckResult {
  uint64_t wrong = 0;    // elements, over all ranks
  int failedRanks = 0;   // ranks with wrong elements, damaged inputs or writes out of bounds
  bool sameBits = true;  // over all ranks, where the collective promises it
};

class Checker {
 public:
  Checker(const LocalRanks& ranks, Board& board) : ranks_(ranks), board_(board), fault_(injectedFault()) {}

  // All drivers call it. Prints what is wrong, other than elements, on stderr.
  CheckResult run(const Work& work, bool isInPlace, uint64_t seed);
  // Only the comparison of bits between ranks.
  CheckResult compareBits(const Work& work, bool isInPlace, uint64_t seed);

 private:
  void prepare(const Pattern& pattern, const Work& work, int local, bool isInPlace) const;
  uint64_t touchedElements(const Pattern& pattern, const Work& work, int local, bool isInPlace, size_t first,
                           size_t end) const;
  uint64_t wrongElements(const Pattern& pattern, const Work& work, int local, bool isInPlace) const;
  uint64_t damage(const Pattern& pattern, const Work& work, int local, bool isInPlace) const;
  void inject(const Work& work, int local, bool isInPlace) const;
  void call(const Pattern& pattern, const Work& work, bool isInPlace) const;
  CheckResult agree(const CheckResult& mine, const Work& work, bool isInPlace);

  const LocalRanks& ranks_;
  Board& board_;
  std::optional<InjectedFault> fault_;
};

}  // namespace topoccl::bench
