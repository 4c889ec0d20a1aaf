#include "communicator/check_call.h"

#include "algorithms/catalog.h"
#include "base/error.h"
#include "base/limits.h"
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
  const uint64_t bytes = count * blocks * elementBytes(call.type);
  checkBuffer(argument, buffer, count, bytes);
  return {argument, reinterpret_cast<uintptr_t>(buffer), bytes};
}

}  // namespace

void checkRank(const char* argument, int rank, int ranks) {
  if (rank < 0 || rank >= ranks)
    throw Error(Code::InvalidArgument, concat(argument, " is ", rank, "; it must be in 0..", ranks - 1));
}

void checkPairs(std::span<const IssuedCall> calls, const Communicator& communicator, int rank) {
  int sends = 0, receives = 0;
  for (const IssuedCall& call : calls) {
    const auto* const peerCall = std::get_if<PeerCall>(&call.call);
    if (peerCall == nullptr || call.communicator != &communicator) continue;
    if (peerCall->peer == rank) ++(peerCall->sends ? sends : receives);
  }
  if (sends != receives) throw unpairedError(rank, sends, receives);
}

void checkBuffer(const char* argument, const void* buffer, uint64_t count, uint64_t bytes) {
  if (buffer == nullptr && count > 0)
    throw Error(Code::InvalidArgument,
                concat(argument, " is NULL although count is ", count, "; only count 0 allows NULL"));
  if (bytes > UINTPTR_MAX - reinterpret_cast<uintptr_t>(buffer))
    throw Error(Code::InvalidArgument,
                concat(argument, " is ", buffer, " and count is ", count, "; ", counted(bytes, "byte"),
                       " from there on would end beyond the last address"));
}

void checkSize(const CollectiveCall& call, int ranks) {
  const uint64_t unit = elementBytes(call.type) * blocksOf(call.collective, ranks);
  if (call.count > kMostMemoryBytes / unit)
    throw Error(Code::InvalidArgument,
                concat("count is ", call.count, "; for ", counted(ranks, "rank"), " and ",
                       counted(elementBytes(call.type), "byte"), " an element it must be at most ",
                       kMostMemoryBytes / unit, ", as no memory is larger"));
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
      concat("sendbuff ", call.send, " (", counted(send.bytes, "byte"), ") and recvbuff ", call.receive, " (",
             counted(receive.bytes, "byte"), ") overlap; count is ", call.count, "; ", name(call.collective),
             inPlace ? " is in place only where both are the same data" : " has no in-place form"));
}

Error unpairedError(int rank, int sends, int receives) {
  return {Code::InvalidUsage, concat("rank ", rank, " has ", counted(sends, "send"), " to itself and ",
                                     counted(receives, "receive"),
                                     " from itself in this group; each needs its partner in the same one")};
}

}  // namespace topoccl
