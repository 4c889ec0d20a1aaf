#include "common/elements.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace topoccl::bench {
namespace {

constexpr ElementType kTypes[kElementTypeCount] = {
    {"int8", ncclInt8, 1, false, true, 0, 0, 0x1p7 - 1},
    {"uint8", ncclUint8, 1, false, false, 0, 0, 0x1p8 - 1},
    {"int32", ncclInt32, 4, false, true, 0, 0, 0x1p31 - 1},
    {"uint32", ncclUint32, 4, false, false, 0, 0, 0x1p32 - 1},
    {"int64", ncclInt64, 8, false, true, 0, 0, 0x1p53},
    {"uint64", ncclUint64, 8, false, false, 0, 0, 0x1p53},
    {"half", ncclFloat16, 2, true, true, 5, 10, 0x1p11},
    {"float", ncclFloat32, 4, true, true, 8, 23, 0x1p24},
    {"double", ncclFloat64, 8, true, true, 11, 52, 0x1p53},
    {"bfloat16", ncclBfloat16, 2, true, true, 8, 7, 0x1p8},
    {"f8e4m3", ncclFloat8e4m3, 1, true, true, 4, 3, 0x1p4},
    {"f8e5m2", ncclFloat8e5m2, 1, true, true, 5, 2, 0x1p3},
};

constexpr const char* kOperators[] = {"sum", "prod", "max", "min", "avg", "mulsum", "none"};

int bias(const ElementType& type) {
  return (1 << (type.exponentBits - 1)) - 1;
}

uint64_t signBit(const ElementType& type) {
  return uint64_t{1} << (type.bytes * 8 - 1);
}

uint64_t encodeFloat(const ElementType& type, double value) {
  const uint64_t sign = std::signbit(value) ? signBit(type) : 0;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  const int smallest = 1 - bias(type);  // exponent of subnormals
  const int exponent = std::max(std::ilogb(magnitude), smallest);
  const double one = std::ldexp(1.0, type.mantissaBits);
  // In units of the last place; a mantissa that rounds up to 2 carries into the exponent by itself.
  const double mantissa = std::nearbyint(std::ldexp(magnitude, type.mantissaBits - exponent));
  const auto fields = static_cast<uint64_t>(exponent - smallest) << type.mantissaBits;
  const bool isNormal = mantissa >= one;
  return sign |
         (fields + (isNormal ? static_cast<uint64_t>(mantissa - one) + (uint64_t{1} << type.mantissaBits)
                             : static_cast<uint64_t>(mantissa)));
}

double decodeFloat(const ElementType& type, uint64_t bits) {
  const uint64_t magnitude = bits & (signBit(type) - 1);
  const auto exponent = static_cast<int>(magnitude >> type.mantissaBits);
  const auto mantissa = static_cast<double>(magnitude & ((uint64_t{1} << type.mantissaBits) - 1));
  const double one = std::ldexp(1.0, type.mantissaBits);
  const double value = exponent == 0 ? std::ldexp(mantissa, 1 - bias(type) - type.mantissaBits)
                                     : std::ldexp(mantissa + one, exponent - bias(type) - type.mantissaBits);
  return (bits & signBit(type)) != 0 ? -value : value;
}

// Position of an element in the order of all finite elements; both zeros are 0.
int64_t position(const ElementType& type, uint64_t bits) {
  const auto magnitude = static_cast<int64_t>(bits & (signBit(type) - 1));
  return (bits & signBit(type)) != 0 ? -magnitude : magnitude;
}

}  // namespace

const ElementType& elementType(ncclDataType_t type) {
  return kTypes[static_cast<int>(type)];
}

std::optional<ncclDataType_t> parseElementType(const std::string& name) {
  for (const ElementType& type : kTypes) {
    if (name == type.name) return type.type;
  }
  return std::nullopt;
}

const char* operatorName(int op) {
  return kOperators[op];
}

std::optional<int> parseOperator(const std::string& name) {
  for (int op = 0; op < kOperatorNameCount; op++) {
    if (name == kOperators[op]) return op;
  }
  return std::nullopt;
}

uint64_t encode(const ElementType& type, double value) {
  if (type.isFloat) return encodeFloat(type, value);
  const uint64_t mask = type.bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << (type.bytes * 8)) - 1;
  return static_cast<uint64_t>(static_cast<int64_t>(std::nearbyint(value))) & mask;
}

double decode(const ElementType& type, uint64_t bits) {
  if (type.isFloat) return decodeFloat(type, bits);
  if (!type.isSigned) return static_cast<double>(bits);
  const auto unused = static_cast<int>(64 - type.bytes * 8);
  return static_cast<double>(static_cast<int64_t>(bits << unused) >> unused);
}

uint64_t ulpDistance(const ElementType& type, uint64_t a, uint64_t b) {
  const int64_t left = position(type, a);
  const int64_t right = position(type, b);
  // As unsigned: the positions of a double's extremes are further apart than int64_t can say.
  return left > right ? static_cast<uint64_t>(left) - static_cast<uint64_t>(right)
                      : static_cast<uint64_t>(right) - static_cast<uint64_t>(left);
}

uint64_t loadBits(const ElementType& type, const std::byte* from) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, type.bytes);  // little endian
  return bits;
}

void storeBits(const ElementType& type, uint64_t bits, std::byte* to) {
  std::memcpy(to, &bits, type.bytes);
}

}  // namespace topoccl::bench
