#include "api/all_to_all_v.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "api/arguments.h"
#include "base/error.h"
#include "base/limits.h"
#include "communicator/call.h"

namespace topoccl::api {
namespace {

// A part as bytes.
struct Stretch {
  uintptr_t begin, end;
  bool received;
  int peer;
};

std::string entry(const char* array, int peer) {
  return concat(array, '[', peer, ']');
}

Stretch stretchOf(const Parts& parts, int peer, size_t elementBytes, bool received) {
  const auto base = reinterpret_cast<uintptr_t>(parts.memory);
  const size_t count = parts.count[peer], displacement = parts.displacement[peer];
  if (parts.memory == nullptr && count > 0)
    throw Error(Code::InvalidArgument, concat(parts.buffer, " is NULL although ", entry(parts.counts, peer),
                                              " is ", count, "; only counts of 0 allow NULL"));
  if (count == 0) return {base, base, received, peer};  // its displacement means nothing
  size_t elements = 0, bytes = 0;
  uintptr_t end = 0;
  if (__builtin_add_overflow(count, displacement, &elements) ||
      __builtin_mul_overflow(elements, elementBytes, &bytes) || bytes > kMostMemoryBytes ||
      __builtin_add_overflow(base, bytes, &end))
    throw Error(Code::InvalidArgument,
                concat(entry(parts.counts, peer), " is ", count, " and ", entry(parts.displacements, peer),
                       " is ", displacement, "; with ", counted(elementBytes, "byte"),
                       " an element both together must be at most ",
                       std::min(kMostMemoryBytes, SIZE_MAX - base) / elementBytes));
  return {base + displacement * elementBytes, end, received, peer};
}

// In one pass over all parts by address: a received one must begin after the end of everything before it, a
// sent one after everything received.
void checkOverlap(std::vector<Stretch> stretches, const Parts& send, const Parts& receive) {
  std::sort(stretches.begin(), stretches.end(),
            [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
  const Stretch* lastOf[2] = {};  // sent, received: the one that ends last so far
  const auto name = [&](const Stretch& it) {
    return concat(it.received ? receive.buffer : send.buffer, "'s part ", it.received ? "from" : "for",
                  " rank ", it.peer);
  };
  for (const Stretch& it : stretches) {
    if (it.begin == it.end) continue;
    for (const Stretch* before : lastOf) {
      if (before == nullptr || before->end <= it.begin || !(it.received || before->received)) continue;
      throw Error(Code::InvalidArgument, concat(name(*before), " and ", name(it),
                                                " overlap; what is received must have memory of its own"));
    }
    const Stretch*& last = lastOf[it.received ? 1 : 0];
    if (last == nullptr || last->end < it.end) last = &it;
  }
}

}  // namespace

void exchangeParts(const Parts& send, const Parts& receive, DataType type, Communicator& communicator,
                   const void* stream) {
  const int ranks = communicator.ranks();
  std::vector<Stretch> stretches;
  for (int peer = 0; peer < ranks; peer++) {
    stretches.push_back(stretchOf(send, peer, elementBytes(type), false));
    stretches.push_back(stretchOf(receive, peer, elementBytes(type), true));
  }
  const auto own = static_cast<size_t>(communicator.rank());
  if (send.count[own] != receive.count[own])
    throw Error(Code::InvalidArgument,
                concat(entry(send.counts, communicator.rank()), " is ", send.count[own], " and ",
                       entry(receive.counts, communicator.rank()), " is ", receive.count[own],
                       "; what a rank sends to itself and receives from itself must be equal"));
  checkOverlap(stretches, send, receive);
  GroupScope group;
  for (const Stretch& it : stretches) {
    const Parts& parts = it.received ? receive : send;
    void* const buffer = parts.memory == nullptr ? nullptr : std::bit_cast<void*>(it.begin);
    communicator.peerCall({!it.received, it.peer, buffer, parts.count[it.peer], type}, stream);
  }
  group.end();
}

}  // namespace topoccl::api
