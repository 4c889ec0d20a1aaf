// Test data whose reduced result is known exactly, whatever the order of reduction.
//
// Every rank has a stream of elements that repeats after kPeriod of them. The period is a prime, so that
// data displaced by any chunk or slot size differs; and a whole period is small, so that filling and checking
// are copies and compares at memory speed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/elements.h"

namespace topoccl::bench {

inline constexpr size_t kPeriod = 7919;

// What mulsum multiplies a rank's data by: 1 on even ranks, 2 on odd ones.
inline double scalarOf(int rank) {
  return 1 + rank % 2;
}

// One period of a stream. Element i of the stream is element i % kPeriod of this.
using Stream = std::vector<std::byte>;

class Pattern {
 public:
  // Streams of `ranks` ranks, different for every seed. The magnitudes are chosen so that every partial
  // result is an element: small integers for sum, powers of two for prod, multiples of `ranks` for floating
  // avg, any integers for max and min. With kNoOperator elements are any bits at all.
  Pattern(const ElementType& type, int op, int ranks, uint64_t seed);

  const ElementType& type() const { return type_; }
  Stream input(int rank) const;
  // The reduction of the first `count` elements of all ranks; the rest of the period is left zero.
  Stream reduced(size_t count) const;
  // How far from reduced() an element may be: 2 for floating avg, where 1/ranks is rounded, else 0.
  uint64_t toleranceUlp() const;

 private:
  uint64_t bits(int rank, size_t index) const;
  uint64_t randomOf(int rank, size_t index) const;
  double value(int rank, size_t index) const;
  double sumValue(uint64_t random, int rank, size_t index) const;
  double productValue(uint64_t random, int rank, size_t index) const;
  double averageValue(uint64_t random, int rank, size_t index) const;
  double combined(size_t index) const;

  const ElementType& type_;
  int op_;
  int ranks_;
  uint64_t seed_;
};

}  // namespace topoccl::bench
