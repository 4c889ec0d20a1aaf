#include "communicator/check_call.h"

#include "algorithms/catalog.h"
#include "base/error.h"
#include "schedule/goal.h"

namespace topoccl {

namespace {

// A buffer as bytes; no bytes where this rank has none.
struct Span {
  const char* argument;
  uintptr_t begin;
  uint64_t bytes;

  bool overlaps(const Span& other) const {
    return bytes != 0 && other.bytes != 0 && begin < other.begin + other.bytes && other.begin < begin + bytes;
  }
};

// Throws where a buffer is missing that the rank must have.
Span spanOf(const char* argument, const void* buffer, const CollectiveCall& call, Presence presence,
            int ranks) {
  const uint64_t blocks = presence == Presence::All ? blocksOf(call.collective, ranks) : 1;
  const uint64_t count = presence == Presence::None ? 0 : call.count;
  if (buffer == nullptr && count > 0)
    throw Error(Code::InvalidArgument,
                concat(argument, " is NULL although count is ", count, "; only count 0 allows NULL"));
  return {argument, reinterpret_cast<uintptr_t>(buffer), count * blocks * elementBytes(call.type)};
}

}  // namespace

void checkRank(const char* argument, int rank, int ranks) {
  if (rank < 0 || rank >= ranks)
    throw Error(Code::InvalidArgument, concat(argument, " is ", rank, "; it must be in 0..", ranks - 1));
}

void checkSize(const CollectiveCall& call, int ranks) {
  const uint64_t unit = elementBytes(call.type) * blocksOf(call.collective, ranks);
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(call.count, unit, &bytes))
    throw Error(Code::InvalidArgument,
                concat("count is ", call.count, "; for ", ranks, " ranks and ", elementBytes(call.type),
                       " bytes an element it must be at most ", SIZE_MAX / unit));
}

void checkBuffers(const CollectiveCall& call, int rank, int ranks) {
  const bool isRoot = rank == call.root;
  const Presence in = presenceOf(call.collective, Place::In, isRoot);
  const Presence out = presenceOf(call.collective, Place::Out, isRoot);
  const Span send = spanOf("sendbuff", call.send, call, in, ranks);
  const Span receive = spanOf("recvbuff", call.receive, call, out, ranks);
  if (!send.overlaps(receive)) return;
  const uint64_t blockBytes = call.count * elementBytes(call.type);
  const bool inPlace = allowsInPlace(call.collective);
  if (inPlace &&
      wholeAddress(call.send, in, rank, blockBytes) == wholeAddress(call.receive, out, rank, blockBytes))
    return;
  throw Error(
      Code::InvalidArgument,
      concat("sendbuff ", call.send, " and recvbuff ", call.receive, " overlap; ", name(call.collective),
             inPlace ? " is in place only where both are the same data" : " has no in-place form"));
}

Error unpairedError(int rank, int sends, int receives) {
  const auto count = [](int calls, const char* one) {
    return concat(calls, " ", one, calls == 1 ? "" : "s");
  };
  return {Code::InvalidUsage,
          concat("rank ", rank, " has ", count(sends, "send"), " to itself and ", count(receives, "receive"),
                 " from itself in this group; each needs its partner in the same one")};
}

}  // namespace topoccl
