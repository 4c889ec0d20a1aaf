// The slot ring: what a connection is in memory. One producer, one reader or (broadcast) several.
//
//   line 0              shape: slots, slot bytes, readers        written once, before the ring is announced
//   line 1              published: slots ever filled             producer -> readers, bulk protocol
//   line 2 + r          freed: slots ever freed by reader r      reader r -> producer
//                       fetches: it would read large messages from the producer's memory, by address
//   offer[r][slot]      where reader r wants message m (m mod slots == slot), one line each
//   slot 0 .. slots-1   a header line and `slotBytes` of data each
//
// Message m (counted from 0 for ever) travels in slot m mod slots. It says that it is full
//   packet: by its own header line, whose sequence becomes m + 1: one cache line carries flag, description
//           and up to kInlineBytes of payload;
//   bulk:   by `published` becoming m + 1.
// Both are release stores that pair with the reader's acquire load; `freed` = m + 1 is the release store by
// which reader r gives the slot back, and pairs with the producer's acquire load in ready().
//
// A slot holds its data (Staged), or has it in the header (Inline), or refers to memory of the producer that
// all readers can reach (Reference). Or the data is not in the slot at all but already where the reader
// offered to have it (bit r of `placed`).
//
// Who owns what: the memory belongs to the transport that made it; SlotWriter and SlotReader are one end's
// private view of it, each used by one thread at a time.
#pragma once

#include <cstdint>

#include "base/peer_memory.h"
#include "base/portable.h"
#include "kernels/sync.h"
#include "schedule/step.h"

namespace topoccl {

enum class SlotKind : uint32_t { Staged, Inline, Reference };

inline constexpr uint32_t kLineBytes = 64;
inline constexpr uint32_t kInlineBytes = 32;
inline constexpr uint32_t kMaxPlacedReaders = 64;

// Describes the message in a slot. `call` identifies the collective call (its number, kind, count, type,
// operator, root); chunk and piece catch two ends that disagree on order.
struct alignas(kLineBytes) SlotHeader {
  struct Direct {
    uint64_t placed;        // bit r: reader r's copy was written to the destination it offered
    const void* reference;  // Reference: where the others find it
  };

  uint64_t sequence;
  uint64_t call;
  uint32_t chunk;
  uint32_t piece;  // low 32 bits
  uint32_t bytes;
  SlotKind kind;
  union {
    unsigned char payload[kInlineBytes];  // Inline
    Direct direct;
  };
};
static_assert(sizeof(SlotHeader) == kLineBytes);

// A reader's wish to have message `sequence - 1` written to `address`, provided that it is the message
// described by call, chunk, piece and bytes.
struct alignas(kLineBytes) Offer {
  uint64_t sequence;
  uint64_t call;
  uint32_t chunk;
  uint32_t piece;
  uint32_t bytes;
  void* address;
};
static_assert(sizeof(Offer) == kLineBytes);

struct RingShape {
  uint32_t slots = 0;      // a power of two
  uint32_t slotBytes = 0;  // a multiple of kLineBytes
  uint32_t readers = 1;

  bool operator==(const RingShape&) const = default;
};

inline constexpr uint64_t kRingMagic = 0x746f706f52696e67;  // "topoRing"

struct alignas(kLineBytes) RingDescription {
  uint64_t magic;
  RingShape shape;
  MemoryOwner producer;  // where references lead
};

struct alignas(kLineBytes) RingCounter {
  uint64_t value;
  uint32_t fetches;  // of readers: 1 or 0
};

// The ring's memory seen as its parts.
class RingView {
 public:
  RingView() = default;
  TOPOCCL_HOST_DEVICE RingView(void* memory, RingShape shape)
      : base_(static_cast<unsigned char*>(memory)),
        shape_(shape),
        slotsAt_(kLineBytes * (2 + uint64_t{shape.readers} * (1 + shape.slots))) {}

  // Bytes a ring of that shape takes.
  TOPOCCL_HOST_DEVICE static uint64_t bytes(RingShape shape) {
    return kLineBytes * (2 + uint64_t{shape.readers} * (1 + shape.slots)) +
           uint64_t{shape.slots} * (kLineBytes + shape.slotBytes);
  }

  TOPOCCL_HOST_DEVICE const RingShape& shape() const { return shape_; }
  TOPOCCL_HOST_DEVICE RingDescription& description() const { return *at<RingDescription>(0); }
  TOPOCCL_HOST_DEVICE uint64_t* published() const { return &at<RingCounter>(kLineBytes)->value; }
  TOPOCCL_HOST_DEVICE uint64_t* freed(uint32_t reader) const {
    return &at<RingCounter>(kLineBytes * (2 + uint64_t{reader}))->value;
  }
  TOPOCCL_HOST_DEVICE uint32_t* fetches(uint32_t reader) const {
    return &at<RingCounter>(kLineBytes * (2 + uint64_t{reader}))->fetches;
  }
  TOPOCCL_HOST_DEVICE Offer& offer(uint32_t reader, uint64_t message) const {
    const uint64_t index = uint64_t{reader} * shape_.slots + (message & (shape_.slots - 1));
    return *at<Offer>(kLineBytes * (2 + uint64_t{shape_.readers} + index));
  }
  TOPOCCL_HOST_DEVICE SlotHeader& header(uint64_t message) const {
    return *at<SlotHeader>(slotsAt_ +
                           (message & (shape_.slots - 1)) * (kLineBytes + uint64_t{shape_.slotBytes}));
  }
  TOPOCCL_HOST_DEVICE static unsigned char* data(SlotHeader& header) {
    return reinterpret_cast<unsigned char*>(&header) + kLineBytes;
  }

 private:
  template <class T>
  TOPOCCL_HOST_DEVICE T* at(uint64_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }

  unsigned char* base_ = nullptr;
  RingShape shape_;
  uint64_t slotsAt_ = 0;
};

// The producer's end.
class SlotWriter {
 public:
  SlotWriter() = default;
  TOPOCCL_HOST_DEVICE SlotWriter(RingView ring, Protocol protocol) : ring_(ring), protocol_(protocol) {}

  // Whether the slot of the next message is free: all readers have freed what it held before.
  TOPOCCL_HOST_DEVICE bool ready() {
    if (next_ - freed_ < ring_.shape().slots) return true;
    uint64_t freed = next_;
    for (; scanned_ < ring_.shape().readers; ++scanned_) {
      const uint64_t seen = loadAcquire(ring_.freed(scanned_));
      if (next_ - seen >= ring_.shape().slots) return false;
      if (seen < leastSeen_) leastSeen_ = seen;
    }
    if (leastSeen_ < freed) freed = leastSeen_;
    freed_ = freed;
    scanned_ = 0;
    leastSeen_ = UINT64_MAX;
    return true;
  }

  TOPOCCL_HOST_DEVICE SlotHeader& header() { return ring_.header(next_); }

  // Reader r's offer for the next message, or nullptr. Pairs with SlotReader::offer's release.
  TOPOCCL_HOST_DEVICE const Offer* offer(uint32_t reader) const {
    const Offer& offer = ring_.offer(reader, next_);
    return loadAcquire(&offer.sequence) == next_ + 1 ? &offer : nullptr;
  }

  // Hands the filled slot to the readers.
  TOPOCCL_HOST_DEVICE void publish() {
    ++next_;
    if (protocol_ == Protocol::Packet)
      storeRelease(&ring_.header(next_ - 1).sequence, next_);
    else
      storeRelease(ring_.published(), next_);
    // Readers looked at the next slot's header when it carried an earlier message. To fetch it back now takes
    // the transfer out of the next message's way: measured, 8 bytes between two cores.
    prefetchForWrite(&ring_.header(next_));
  }

  // Whether all readers would fetch the next message, if it is large, from the producer's memory.
  TOPOCCL_HOST_DEVICE bool fetched() const {
    for (uint32_t reader = 0; reader < ring_.shape().readers; ++reader)
      if (loadRelaxed(ring_.fetches(reader)) == 0) return false;
    return true;
  }

  // Whether every reader has freed all messages before `message`.
  TOPOCCL_HOST_DEVICE bool freedUpTo(uint64_t message) const {
    for (uint32_t reader = 0; reader < ring_.shape().readers; ++reader)
      if (loadAcquire(ring_.freed(reader)) < message) return false;
    return true;
  }

  // The first reader that has not, or 0.
  TOPOCCL_HOST_DEVICE uint32_t slowest(uint64_t message) const {
    for (uint32_t reader = 0; reader < ring_.shape().readers; ++reader)
      if (loadAcquire(ring_.freed(reader)) < message) return reader;
    return 0;
  }

  TOPOCCL_HOST_DEVICE uint64_t next() const { return next_; }
  TOPOCCL_HOST_DEVICE const RingView& ring() const { return ring_; }

 private:
  RingView ring_;
  Protocol protocol_ = Protocol::Packet;
  uint64_t next_ = 0;     // message to fill
  uint64_t freed_ = 0;    // every reader is known to have freed that many
  uint32_t scanned_ = 0;  // readers found far enough for next_ in an unfinished look
  uint64_t leastSeen_ = UINT64_MAX;
};

// One reader's end.
class SlotReader {
 public:
  SlotReader() = default;
  TOPOCCL_HOST_DEVICE SlotReader(RingView ring, Protocol protocol, uint32_t reader)
      : ring_(ring), protocol_(protocol), reader_(reader) {}

  // Whether the next message is there.
  TOPOCCL_HOST_DEVICE bool ready() {
    if (protocol_ == Protocol::Packet) return loadAcquire(&ring_.header(next_).sequence) == next_ + 1;
    if (next_ < published_) return true;
    published_ = loadAcquire(ring_.published());
    return next_ < published_;
  }

  TOPOCCL_HOST_DEVICE SlotHeader& header() { return ring_.header(next_); }

  // Gives the slot back.
  TOPOCCL_HOST_DEVICE void free() {
    ++next_;
    storeRelease(ring_.freed(reader_), next_);
  }

  // Whether references to the producer's memory are welcome from now on. Some without may be on their way.
  TOPOCCL_HOST_DEVICE void fetch(bool welcome) {
    if (welcome == fetches_) return;
    fetches_ = welcome;
    storeRelaxed(ring_.fetches(reader_), welcome ? 1U : 0U);
  }

  // Offers a destination for `message`. The one `slots` before it must have been read, freed or not: the
  // offer takes the place of its offer, which the producer looked at before publishing.
  TOPOCCL_HOST_DEVICE void offer(uint64_t message, const Offer& wish) {
    Offer& offer = ring_.offer(reader_, message);
    offer.call = wish.call;
    offer.chunk = wish.chunk;
    offer.piece = wish.piece;
    offer.bytes = wish.bytes;
    offer.address = wish.address;
    storeRelease(&offer.sequence, message + 1);
  }

  TOPOCCL_HOST_DEVICE uint64_t next() const { return next_; }
  TOPOCCL_HOST_DEVICE uint32_t reader() const { return reader_; }
  TOPOCCL_HOST_DEVICE const RingView& ring() const { return ring_; }

 private:
  RingView ring_;
  Protocol protocol_ = Protocol::Packet;
  uint32_t reader_ = 0;
  uint64_t next_ = 0;       // message to read
  uint64_t published_ = 0;  // bulk: messages known to be there
  bool fetches_ = false;
};

}  // namespace topoccl
