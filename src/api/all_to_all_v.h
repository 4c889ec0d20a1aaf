// All-to-all with a size for every pair: a group of sends and receives, checked as one call.
#pragma once

#include <cstddef>

#include "communicator/communicator.h"
#include "kernels/types.h"
#include "nccl.h"

namespace topoccl::api {

// A buffer and its parts: counts[r] elements at displacements[r], for or from rank r.
struct Parts {
  const char* buffer;
  const char* counts;  // the three arguments' names
  const char* displacements;
  const void* memory;
  const size_t* count;
  const size_t* displacement;
};

// Throws InvalidArgument, naming the entry, for what can't be: NULL, parts beyond size_t's reach, received
// parts that overlap sent ones or each other. Nothing of the call is issued then.
void exchangeParts(const Parts& send, const Parts& receive, DataType type, Communicator& communicator,
                   const void* stream);

}  // namespace topoccl::api
