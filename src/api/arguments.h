// Argument checks. Each throws InvalidArgument naming the argument, its value and what is allowed.
#pragma once

#include <cstddef>

#include "kernels/types.h"
#include "nccl.h"

namespace topoccl::api {

// For results, and for what the caller has there.
void checkPointer(const void* pointer, const char* argument);
void checkInput(const void* pointer, const char* argument);
// The rank itself is not looked at here: the bootstrap tells all ranks when one is out of range.
void checkRankCount(int nranks);

// `count` elements must have a size that memory can have.
void checkCount(size_t count, ncclDataType_t datatype);

// That, and where it is. NULL is fine when there is nothing to read or write.
void checkBuffer(const void* buffer, size_t count, ncclDataType_t datatype, const char* argument);

DataType checkedType(ncclDataType_t datatype);
// Whether a scalar is read at each call (ncclScalarDevice).
bool isReadAtEachCall(int residence);

}  // namespace topoccl::api
