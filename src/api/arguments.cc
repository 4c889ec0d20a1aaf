#include "api/arguments.h"

#include <cstdint>

#include "base/error.h"
#include "base/limits.h"
#include "communicator/check_call.h"

namespace topoccl::api {
namespace {

[[noreturn]] void reject(const std::string& message) {
  throw Error(Code::InvalidArgument, message);
}

}  // namespace

void checkPointer(const void* pointer, const char* argument) {
  if (pointer == nullptr) reject(concat(argument, " is NULL; it must point to where the result goes"));
}

void checkInput(const void* pointer, const char* argument) {
  if (pointer == nullptr) reject(concat(argument, " is NULL; it must point to the caller's data"));
}

void checkRankCount(int nranks) {
  if (nranks < 1) reject(concat("nranks is ", nranks, "; it must be at least 1"));
}

void checkCount(size_t count, ncclDataType_t datatype) {
  const size_t bytes = elementBytes(checkedType(datatype));
  if (count > kMostMemoryBytes / bytes) {
    reject(concat("count is ", count, "; with ", counted(bytes, "byte"), " an element it must be at most ",
                  kMostMemoryBytes / bytes, ", as no memory is larger"));
  }
}

void checkBuffer(const void* buffer, size_t count, ncclDataType_t datatype, const char* argument) {
  checkCount(count, datatype);
  topoccl::checkBuffer(argument, buffer, count, count * elementBytes(checkedType(datatype)));
}

DataType checkedType(ncclDataType_t datatype) {
  const auto value = static_cast<int>(datatype);
  if (value < 0 || value >= kDataTypeCount) {
    reject(concat("datatype is ", value, "; it must be in 0..", kDataTypeCount - 1, " (ncclDataType_t)"));
  }
  return static_cast<DataType>(value);
}

bool isReadAtEachCall(int residence) {
  if (residence != ncclScalarDevice && residence != ncclScalarHostImmediate) {
    reject(concat("residence is ", residence,
                  "; it must be 0 (ncclScalarDevice) or 1 (ncclScalarHostImmediate)"));
  }
  return residence == ncclScalarDevice;
}

}  // namespace topoccl::api
