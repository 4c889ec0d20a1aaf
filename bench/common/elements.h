// The twelve element types and the operators by nccl-tests' names, and conversion of single elements to
// and from double: what the exact check is made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "nccl.h"

namespace topoccl::bench {

struct ElementType {
  const char* name;  // nccl-tests' name
  ncclDataType_t type;
  size_t bytes;
  bool isFloat;
  bool isSigned;
  int exponentBits;   // of floating types
  int mantissaBits;   // stored ones
  double exactLimit;  // every integer of magnitude up to this is an element, exactly (at most 2^53)
};

inline constexpr int kElementTypeCount = 12;
const ElementType& elementType(ncclDataType_t type);
std::optional<ncclDataType_t> parseElementType(const std::string& name);

// nccl-tests counts "mulsum" (a pre-multiplied sum) as one more operator.
inline constexpr int kMulSum = ncclNumOps;
inline constexpr int kOperatorNameCount = ncclNumOps + 1;
inline constexpr int kNoOperator = kOperatorNameCount;  // of collectives that don't reduce: "none"
const char* operatorName(int op);
std::optional<int> parseOperator(const std::string& name);

// Bits of the element nearest to `value`, ties to even; finite values in range only.
uint64_t encode(const ElementType& type, double value);
double decode(const ElementType& type, uint64_t bits);

// Elements of a floating type between the two, counting one of them: 0 for equal bits, 1 for neighbours.
uint64_t ulpDistance(const ElementType& type, uint64_t a, uint64_t b);

uint64_t loadBits(const ElementType& type, const std::byte* from);
void storeBits(const ElementType& type, uint64_t bits, std::byte* to);

}  // namespace topoccl::bench
