// Moves filled slots from a ring here to a ring there: how a connection crosses what both ends cannot map.
// The two halves of a network transport are pumps around a wire; within one process the faulty transport of
// the tests is one.
//
// A pump is a reader of one ring and the producer of the other, and is stepped, like a lane, by whoever owns
// it: nothing here waits. It copies what a slot holds and keeps its description; references don't cross.
#pragma once

#include <algorithm>
#include <cstring>

#include "kernels/endpoint.h"

namespace topoccl {

class Pump {
 public:
  // Rings of the same slot size; `from` must never hold references (Endpoint::direct is false there).
  Pump(Endpoint from, Endpoint to) : from_(from), to_(to) {}

  // Whether a slot is there and there is room for it.
  bool ready() { return from_.reader.ready() && to_.writer.ready(); }

  // Copies one slot without handing it on: the caller may look at it or change it first.
  SlotHeader& copy() {
    SlotHeader& source = from_.reader.header();
    SlotHeader& target = to_.writer.header();
    target.call = source.call;
    target.chunk = source.chunk;
    target.piece = source.piece;
    target.bytes = source.bytes;
    target.kind = source.kind;
    std::memcpy(target.payload, source.payload, sizeof(target.payload));
    if (source.kind == SlotKind::Staged) {
      target.direct.placed = 0;
      // What says to be longer than a slot is damaged; the reader will see that it isn't what it expects.
      const uint32_t most = to_.writer.ring().shape().slotBytes;
      std::memcpy(RingView::data(target), RingView::data(source), std::min(source.bytes, most));
    }
    return target;
  }

  // Hands the copied slot on and frees the one it came from.
  void deliver() {
    to_.writer.publish();
    discard();
    ringBells(to_);
  }

  // Frees the slot without handing it on.
  void discard() {
    from_.reader.free();
    fullFence();
    ringBells(from_);
  }

 private:
  Endpoint from_;
  Endpoint to_;
};

}  // namespace topoccl
