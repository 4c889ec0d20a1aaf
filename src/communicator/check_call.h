// What is wrong with a call's arguments, as far as that takes a communicator to see. Each throws
// InvalidArgument naming the argument, its value and what is allowed.
#pragma once

#include <span>

#include "base/error.h"
#include "communicator/issued_call.h"

namespace topoccl {

void checkRank(const char* argument, int rank, int ranks);

// Of messages to itself that a rank issues together: InvalidUsage.
Error unpairedError(int rank, int sends, int receives);

// Throws it where those among `calls` on that communicator, whose rank this is, are no pairs.
void checkPairs(std::span<const IssuedCall> calls, const Communicator& communicator, int rank);

// Of `count` elements from `buffer` on, `bytes` in all: there, where there are some, and within the address
// space.
void checkBuffer(const char* argument, const void* buffer, uint64_t count, uint64_t bytes);

// All blocks together must have a size that memory can have.
void checkSize(const CollectiveCall& call, int ranks);

// Buffers that the rank needs must be there. They may be the same memory, block by block, but not overlap in
// any other way.
void checkBuffers(const CollectiveCall& call, int rank, int ranks);

}  // namespace topoccl
