// The slot ring by itself: layout, flow control of one and of several readers, offers, and streams between
// threads, which tsan reads along.
#include "kernels/slot_ring.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "kernels/mix.h"
#include "support/ring_memory.h"

namespace topoccl::test {
namespace {

// ---- layout ----

// Marks every byte of every part of the ring; a byte that two parts claim, or that lies outside, is counted.
class Claims {
 public:
  Claims(unsigned char* base, uint64_t bytes) : base_(base), claimed_(bytes) {}

  void claim(const void* part, uint64_t bytes) {
    const auto begin = static_cast<uint64_t>(static_cast<const unsigned char*>(part) - base_);
    for (uint64_t i = begin; i < begin + bytes; ++i) {
      if (i >= claimed_.size() || claimed_[i]) {
        ++conflicts_;
        return;
      }
      claimed_[i] = true;
    }
  }

  uint64_t conflicts() const { return conflicts_; }
  bool complete() const {
    for (const bool byte : claimed_)
      if (!byte) return false;
    return true;
  }

 private:
  unsigned char* base_;
  std::vector<bool> claimed_;
  uint64_t conflicts_ = 0;
};

void claimAll(Claims& claims, const RingView& ring) {
  const RingShape& shape = ring.shape();
  claims.claim(&ring.description(), sizeof(RingDescription));
  claims.claim(ring.published(), sizeof(RingCounter));
  for (uint32_t reader = 0; reader < shape.readers; ++reader) {
    claims.claim(ring.freed(reader), sizeof(RingCounter));
    for (uint32_t slot = 0; slot < shape.slots; ++slot)
      claims.claim(&ring.offer(reader, slot), sizeof(Offer));
  }
  for (uint32_t slot = 0; slot < shape.slots; ++slot) {
    claims.claim(&ring.header(slot), sizeof(SlotHeader));
    claims.claim(RingView::data(ring.header(slot)), shape.slotBytes);
  }
}

TEST(RingLayout, PartsNeverOverlapAndFillTheRing) {
  for (const uint32_t slots : {1U, 2U, 4U, 8U, 64U})
    for (const uint32_t slotBytes : {64U, 128U, 4096U})
      for (const uint32_t readers : {1U, 2U, 3U, 12U, 65U}) {
        const RingShape shape{slots, slotBytes, readers};
        RingMemory memory(shape);
        Claims claims(static_cast<unsigned char*>(memory.data()), RingView::bytes(shape));
        claimAll(claims, memory.view());
        EXPECT_EQ(claims.conflicts(), 0U) << slots << " x " << slotBytes << " for " << readers;
        EXPECT_TRUE(claims.complete()) << slots << " x " << slotBytes << " for " << readers;
      }
}

TEST(RingLayout, TheCheckSeesARingThatIsSmallerThanItsParts) {
  const RingShape shape{4, 128, 2};
  RingMemory memory(shape);
  Claims claims(static_cast<unsigned char*>(memory.data()), RingView::bytes(shape) - 1);
  claimAll(claims, memory.view());
  EXPECT_EQ(claims.conflicts(), 1U);
}

TEST(RingLayout, EveryPartStartsOnACacheLine) {
  RingMemory memory({8, 192, 3});
  const RingView ring = memory.view();
  for (uint64_t message = 0; message < 8; ++message) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(&ring.header(message)) % kLineBytes, 0U);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(&ring.offer(2, message)) % kLineBytes, 0U);
  }
  EXPECT_EQ(reinterpret_cast<uintptr_t>(ring.published()) % kLineBytes, 0U);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(ring.freed(2)) % kLineBytes, 0U);
}

TEST(RingLayout, SizesBeyondFourGigabytesDoNotWrap) {
  const RingShape shape{1U << 20, 1U << 20, 1};
  EXPECT_EQ(RingView::bytes(shape), uint64_t{kLineBytes} * (3 + (1U << 20)) +
                                        (uint64_t{1} << 20) * (kLineBytes + (uint64_t{1} << 20)));
}

// ---- flow control, one thread ----

using Shape = std::tuple<Protocol, uint32_t, uint32_t>;  // slots, readers

class SlotRing : public testing::TestWithParam<Shape> {
 protected:
  static constexpr uint32_t kSlotBytes = 256;

  SlotRing() : memory_({slots(), kSlotBytes, readers()}), writer_(memory_.view(), protocol()) {
    for (uint32_t reader = 0; reader < readers(); ++reader)
      readers_.emplace_back(memory_.view(), protocol(), reader);
  }

  Protocol protocol() const { return std::get<0>(GetParam()); }
  uint32_t slots() const { return std::get<1>(GetParam()); }
  uint32_t readers() const { return std::get<2>(GetParam()); }

  RingMemory memory_;
  SlotWriter writer_;
  std::vector<SlotReader> readers_;
};

TEST_P(SlotRing, HoldsExactlyItsSlotsUntilTheSlowestReaderFrees) {
  for (int round = 0; round < 20; ++round) {
    for (uint32_t i = 0; i < slots(); ++i) {
      ASSERT_TRUE(writer_.ready());
      writer_.publish();
    }
    ASSERT_FALSE(writer_.ready());
    // All readers but one free everything: it is the one that counts, whichever it is.
    const uint32_t slow = static_cast<uint32_t>(round) % readers();
    for (uint32_t reader = 0; reader < readers(); ++reader)
      for (uint32_t i = 0; reader != slow && i < slots(); ++i) {
        ASSERT_TRUE(readers_[reader].ready());
        readers_[reader].free();
        ASSERT_FALSE(writer_.ready());
      }
    for (uint32_t i = 0; i < slots(); ++i) {
      ASSERT_TRUE(readers_[slow].ready());
      readers_[slow].free();
      ASSERT_TRUE(writer_.ready());
    }
    ASSERT_FALSE(readers_[slow].ready());
  }
}

TEST_P(SlotRing, NothingIsReadyBeforeItIsPublished) {
  for (uint32_t message = 0; message < 3 * slots(); ++message) {
    ASSERT_TRUE(writer_.ready());
    writer_.header().bytes = message;
    for (SlotReader& reader : readers_) ASSERT_FALSE(reader.ready()) << message;
    writer_.publish();
    for (SlotReader& reader : readers_) {
      ASSERT_TRUE(reader.ready()) << message;
      ASSERT_EQ(reader.header().bytes, message);
      reader.free();
    }
  }
}

TEST_P(SlotRing, FreedUpToWaitsForEveryReader) {
  EXPECT_TRUE(writer_.freedUpTo(0));
  ASSERT_TRUE(writer_.ready());
  writer_.publish();
  for (SlotReader& reader : readers_) {
    EXPECT_FALSE(writer_.freedUpTo(1));
    ASSERT_TRUE(reader.ready());
    reader.free();
  }
  EXPECT_TRUE(writer_.freedUpTo(1));
  EXPECT_FALSE(writer_.freedUpTo(2));
}

// ---- offers ----

TEST_P(SlotRing, AnOfferIsSeenForItsMessageOnly) {
  int place = 0;
  Offer wish{};
  wish.address = &place;
  wish.bytes = 100;
  for (uint64_t message = 0; message < 4 * slots(); ++message) {
    const uint32_t reader = static_cast<uint32_t>(message) % readers();
    EXPECT_EQ(writer_.offer(reader), nullptr) << "a stale offer, message " << message;
    if (message % 3 == 0) {
      readers_[reader].offer(message, wish);
      const Offer* const seen = writer_.offer(reader);
      ASSERT_NE(seen, nullptr);
      EXPECT_EQ(seen->address, &place);
      EXPECT_EQ(seen->bytes, 100U);
      for (uint32_t other = 0; other < readers(); ++other)
        EXPECT_EQ(writer_.offer(other) != nullptr, other == reader);
    }
    ASSERT_TRUE(writer_.ready());
    writer_.publish();
    for (SlotReader& each : readers_) {
      ASSERT_TRUE(each.ready());
      each.free();
    }
  }
}

TEST_P(SlotRing, OffersMadeAheadWaitForTheirMessages) {
  std::vector<int> places(slots());
  for (uint32_t message = 0; message < slots(); ++message) {
    Offer wish{};
    wish.address = &places[message];
    readers_[0].offer(message, wish);
  }
  for (uint32_t message = 0; message < slots(); ++message) {
    ASSERT_TRUE(writer_.ready());
    ASSERT_NE(writer_.offer(0), nullptr);
    EXPECT_EQ(writer_.offer(0)->address, &places[message]);
    writer_.publish();
  }
}

// ---- streams between threads ----

// Word i of a message, different for every message.
uint64_t word(uint64_t message, uint64_t i) {
  return mix(message, i);
}

void fill(SlotHeader& header, uint64_t message, uint32_t bytes) {
  header.call = message;
  header.bytes = bytes;
  header.kind = bytes <= kInlineBytes ? SlotKind::Inline : SlotKind::Staged;
  unsigned char* const to = header.kind == SlotKind::Inline ? header.payload : RingView::data(header);
  for (uint32_t i = 0; i < bytes / 8; ++i) {
    const uint64_t value = word(message, i);
    std::memcpy(to + 8 * i, &value, 8);
  }
}

bool holds(SlotHeader& header, uint64_t message, uint32_t bytes) {
  if (header.call != message || header.bytes != bytes) return false;
  unsigned char* const from = header.kind == SlotKind::Inline ? header.payload : RingView::data(header);
  for (uint32_t i = 0; i < bytes / 8; ++i) {
    const uint64_t value = word(message, i);
    if (std::memcmp(from + 8 * i, &value, 8) != 0) return false;
  }
  return true;
}

// Of the length of a message: inline and staged ones, up to a full slot, mixed.
uint32_t lengthOf(uint64_t message, uint32_t slotBytes) {
  return static_cast<uint32_t>(mix(message) % (slotBytes / 8 + 1)) * 8;
}

// Reads `messages` and returns how many were wrong. `pause(message)` may keep it busy.
template <class Pause>
uint64_t readStream(SlotReader reader, uint64_t messages, uint32_t slotBytes, const Pause& pause) {
  uint64_t wrong = 0;
  for (uint64_t message = 0; message < messages; ++message) {
    while (!reader.ready()) std::this_thread::yield();
    pause(message);
    if (!holds(reader.header(), message, lengthOf(message, slotBytes))) ++wrong;
    reader.free();
  }
  return wrong;
}

void writeStream(SlotWriter writer, uint64_t messages, uint32_t slotBytes) {
  for (uint64_t message = 0; message < messages; ++message) {
    while (!writer.ready()) std::this_thread::yield();
    fill(writer.header(), message, lengthOf(message, slotBytes));
    writer.publish();
  }
}

TEST_P(SlotRing, StreamsBetweenThreadsArriveWholeAndInOrder) {
  // Many where few context switches are needed, and still some where each message takes several.
  const uint64_t messages = slots() == 8 && readers() == 1 ? 100'000 : 1000 * slots();
  std::vector<uint64_t> wrong(readers(), UINT64_MAX);
  std::vector<std::thread> threads;
  for (uint32_t reader = 0; reader < readers(); ++reader)
    threads.emplace_back(
        [&, reader] { wrong[reader] = readStream(readers_[reader], messages, kSlotBytes, [](uint64_t) {}); });
  writeStream(writer_, messages, kSlotBytes);
  for (std::thread& thread : threads) thread.join();
  for (uint32_t reader = 0; reader < readers(); ++reader) EXPECT_EQ(wrong[reader], 0U) << "reader " << reader;
}

// Each reader in turn is the slow one: it looks at its slot only after the others had time to run ahead.
TEST_P(SlotRing, ASlowReaderIsNeverOverrun) {
  constexpr uint64_t kMessages = 600;
  std::vector<uint64_t> wrong(readers(), UINT64_MAX);
  std::vector<std::thread> threads;
  for (uint32_t reader = 0; reader < readers(); ++reader)
    threads.emplace_back([&, reader] {
      const auto pause = [&](uint64_t message) {
        if (message / 16 % readers() != reader || message % 16 != 0) return;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      };
      wrong[reader] = readStream(readers_[reader], kMessages, kSlotBytes, pause);
    });
  writeStream(writer_, kMessages, kSlotBytes);
  for (std::thread& thread : threads) thread.join();
  for (uint32_t reader = 0; reader < readers(); ++reader) EXPECT_EQ(wrong[reader], 0U) << "reader " << reader;
}

// The check of the streams is one: a producer that does not wait for its readers is found out.
TEST(SlotRingCheck, SeesAnOverrun) {
  RingMemory memory({2, 256, 1});
  SlotWriter writer(memory.view(), Protocol::Bulk);
  SlotReader reader(memory.view(), Protocol::Bulk, 0);
  for (uint64_t message = 0; message < 3; ++message) {
    fill(writer.header(), message, 256);
    writer.publish();
  }
  ASSERT_TRUE(reader.ready());
  EXPECT_FALSE(holds(reader.header(), 0, 256));
  EXPECT_TRUE(holds(reader.header(), 2, 256));
}

std::string shapeName(const testing::TestParamInfo<Shape>& info) {
  const auto [protocol, slots, readers] = info.param;
  return concat(protocol == Protocol::Packet ? "packet" : "bulk", "_slots_", slots, "_readers_", readers);
}

INSTANTIATE_TEST_SUITE_P(Shapes, SlotRing,
                         testing::Combine(testing::Values(Protocol::Packet, Protocol::Bulk),
                                          testing::Values(1U, 2U, 4U, 8U), testing::Values(1U, 3U)),
                         shapeName);

}  // namespace
}  // namespace topoccl::test
