#include "common/pattern.h"

#include <algorithm>
#include <cmath>

namespace topoccl::bench {
namespace {

// splitmix64's finisher (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// An integer in [-limit, limit], or [0, limit] for unsigned types.
double integerUpTo(double limit, bool isSigned, uint64_t random) {
  const auto bound = static_cast<uint64_t>(limit);
  if (!isSigned) return static_cast<double>(random % (bound + 1));
  return static_cast<double>(random % (2 * bound + 1)) - static_cast<double>(bound);
}

}  // namespace

Pattern::Pattern(const ElementType& type, int op, int ranks, uint64_t seed)
    : type_(type), op_(op), ranks_(ranks), seed_(mix(seed + 0x9e3779b97f4a7c15U)) {}

uint64_t Pattern::toleranceUlp() const {
  return op_ == ncclAvg && type_.isFloat ? 2 : 0;
}

double Pattern::sumValue(uint64_t random, int rank, size_t index) const {
  const double limit = op_ == kMulSum ? type_.exactLimit / 2 : type_.exactLimit;
  const double share = std::floor(limit / ranks_);
  if (share >= 1) return integerUpTo(share, type_.isSigned, random);
  // More ranks than the type can count to: only so many of them contribute to one element.
  const auto turn = static_cast<double>((static_cast<size_t>(rank) + index) % static_cast<size_t>(ranks_));
  return turn < limit ? static_cast<double>(random & 1) : 0;
}

double Pattern::productValue(uint64_t random, int rank, size_t index) const {
  const double sign = type_.isSigned && (random & 4) != 0 ? -1 : 1;
  const bool isMyTurn = index % static_cast<size_t>(ranks_) == static_cast<size_t>(rank);
  return isMyTurn ? sign * static_cast<double>(1 + (random & 1)) : sign;
}

double Pattern::averageValue(uint64_t random, int rank, size_t index) const {
  if (!type_.isFloat) return sumValue(random, rank, index);
  // ranks * 2^j times the rounded 1/ranks rounds back to 2^j; sums of those are small integers.
  const double share = std::floor(type_.exactLimit / ranks_);
  if (share < 1) return ranks_ * std::fabs(sumValue(random, rank, index));
  const int powers = std::ilogb(share) + 1;
  const auto pick = static_cast<int>(random % static_cast<uint64_t>(powers + 1));
  return pick == powers ? 0 : std::ldexp(static_cast<double>(ranks_), pick);
}

uint64_t Pattern::randomOf(int rank, size_t index) const {
  return mix(seed_ ^ mix(index * 0x10001 + static_cast<uint64_t>(rank)));
}

uint64_t Pattern::bits(int rank, size_t index) const {
  return op_ == kNoOperator ? randomOf(rank, index) : encode(type_, value(rank, index));
}

double Pattern::value(int rank, size_t index) const {
  const uint64_t random = randomOf(rank, index);
  switch (op_) {
    case ncclProd:
      return productValue(random, rank, index);
    case ncclMax:
    case ncclMin:
      return integerUpTo(type_.exactLimit, type_.isSigned, random);
    case ncclAvg:
      return averageValue(random, rank, index);
    default:
      return sumValue(random, rank, index);
  }
}

double Pattern::combined(size_t index) const {
  double result = value(0, index);
  for (int rank = 1; rank < ranks_; rank++) {
    const double next = value(rank, index);
    switch (op_) {
      case ncclProd:
        result *= next;
        break;
      case ncclMax:
        result = std::max(result, next);
        break;
      case ncclMin:
        result = std::min(result, next);
        break;
      case kMulSum:
        result += scalarOf(rank) * next;
        break;
      default:
        result += next;
        break;
    }
  }
  if (op_ != ncclAvg) return result;
  return type_.isFloat ? result / ranks_ : std::trunc(result / ranks_);
}

Stream Pattern::input(int rank) const {
  Stream stream(kPeriod * type_.bytes);
  for (size_t i = 0; i < kPeriod; i++) {
    storeBits(type_, bits(rank, i), stream.data() + i * type_.bytes);
  }
  return stream;
}

Stream Pattern::reduced(size_t count) const {
  Stream stream(kPeriod * type_.bytes);
  for (size_t i = 0; i < std::min(count, kPeriod); i++) {
    storeBits(type_, encode(type_, combined(i)), stream.data() + i * type_.bytes);
  }
  return stream;
}

}  // namespace topoccl::bench
