// Which way a message takes (in the header, through the slot, by reference, to an offered destination), what
// each way leaves untouched, and that no way is taken in a poisoned communicator.
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "support/pair.h"

namespace topoccl::test {
namespace {

using Bytes = std::vector<unsigned char>;

Bytes pattern(uint64_t count, unsigned seed) {
  Bytes bytes(count);
  for (uint64_t i = 0; i < count; ++i) bytes[i] = static_cast<unsigned char>(i * 31 + seed);
  return bytes;
}

Bytes sum(const Bytes& a, const Bytes& b) {
  Bytes bytes(a.size());
  for (uint64_t i = 0; i < a.size(); ++i) bytes[i] = static_cast<unsigned char>(a[i] + b[i]);
  return bytes;
}

// Bytes, so that messages can have any length.
void addBytes(const CombineArgs& args) {
  for (uint64_t i = 0; i < args.count; ++i) {
    unsigned char total = 0;
    for (uint32_t input = 0; input < args.inputCount; ++input)
      total = static_cast<unsigned char>(total + static_cast<const unsigned char*>(args.inputs[input])[i]);
    for (uint32_t output = 0; output < args.outputCount; ++output)
      static_cast<unsigned char*>(args.outputs[output])[i] = total;
  }
}

// Both ends of one call, with buffers.
struct Call {
  Call(Pair& pair_, uint64_t count, uint64_t directBytes = 64)
      : pair(pair_),
        sent(pattern(count, 1)),
        senderOut(pattern(count, 2)),
        own(pattern(count, 3)),
        got(count, 0x11),
        sending(pair.context(sent, senderOut, true, directBytes)),
        receiving(pair.context(own, got, false, directBytes)) {}

  void start(CombineFunction combine = addBytes) {
    pair.receiver->start(receiving, combine);
    pair.sender->start(sending, combine);
  }

  Pair& pair;
  Bytes sent, senderOut, own, got;
  CallContext sending, receiving;
};

class DirectAccess : public testing::TestWithParam<Protocol> {
 protected:
  static PairPlan plan(bool reduces) {
    PairPlan plan;
    plan.reduces = reduces;
    plan.protocol = GetParam();
    return plan;
  }
};

TEST_P(DirectAccess, AReferenceIsReadWhereItIs) {
  Pair pair(plan(true));
  Call call(pair, 1000);
  call.start();
  EXPECT_EQ(pair.sender->advance(), Progress::Waiting) << "done before its buffer was read";
  EXPECT_EQ(pair.ring.header(0).kind, SlotKind::Reference);
  EXPECT_EQ(pair.ring.header(0).direct.reference, call.sent.data());
  EXPECT_EQ(pair.sender->advance(), Progress::Waiting);
  EXPECT_EQ(pair.sender->waiting().lane, UINT32_MAX);
  EXPECT_EQ(pair.receiver->advance(), Progress::Done);
  EXPECT_EQ(pair.sender->advance(), Progress::Done);
  EXPECT_EQ(call.got, sum(call.sent, call.own));
  EXPECT_TRUE(pair.slotUnwritten(0));
}

TEST_P(DirectAccess, AnOfferedDestinationIsWrittenBySender) {
  Pair pair(plan(false));
  Call call(pair, 1000);
  call.start();
  EXPECT_EQ(pair.sender->advance(), Progress::Done);
  EXPECT_EQ(pair.ring.header(0).direct.placed, 1U);
  EXPECT_EQ(call.got, call.sent) << "the receiver has not moved yet";
  EXPECT_TRUE(pair.slotUnwritten(0));
  EXPECT_EQ(pair.receiver->advance(), Progress::Done);
  EXPECT_EQ(call.got, call.sent);
}

TEST_P(DirectAccess, WithoutAnOfferInTimeTheReferenceServes) {
  Pair pair(plan(false));
  Call call(pair, 1000);
  pair.sender->start(call.sending, addBytes);
  EXPECT_EQ(pair.sender->advance(), Progress::Waiting);
  EXPECT_EQ(pair.ring.header(0).kind, SlotKind::Reference);
  EXPECT_EQ(pair.ring.header(0).direct.placed, 0U);
  pair.receiver->start(call.receiving, addBytes);
  EXPECT_EQ(pair.receiver->advance(), Progress::Done);
  EXPECT_EQ(pair.sender->advance(), Progress::Done);
  EXPECT_EQ(call.got, call.sent);
}

TEST_P(DirectAccess, SmallMessagesGoThroughTheSlot) {
  for (const bool reduces : {false, true}) {
    Pair pair(plan(reduces));
    Call call(pair, 100, 101);
    call.start();
    EXPECT_EQ(pair.sender->advance(), Progress::Done) << "nothing to wait for: its data was copied";
    EXPECT_EQ(pair.ring.header(0).kind, SlotKind::Staged);
    EXPECT_EQ(pair.ring.header(0).direct.placed, 0U);
    EXPECT_FALSE(pair.slotUnwritten(0));
    EXPECT_EQ(pair.receiver->advance(), Progress::Done);
    EXPECT_EQ(call.got, reduces ? sum(call.sent, call.own) : call.sent);
  }
}

TEST_P(DirectAccess, AnIndirectConnectionStagesEverything) {
  for (const bool reduces : {false, true}) {
    PairPlan indirect = plan(reduces);
    indirect.direct = false;
    Pair pair(indirect);
    Call call(pair, 1000, 0);
    call.start();
    EXPECT_EQ(pair.sender->advance(), Progress::Done);
    EXPECT_EQ(pair.ring.header(0).kind, SlotKind::Staged);
    EXPECT_EQ(pair.receiver->advance(), Progress::Done);
    EXPECT_EQ(call.got, reduces ? sum(call.sent, call.own) : call.sent);
  }
}

TEST_P(DirectAccess, UpTo32BytesTravelInTheHeader) {
  for (const bool reduces : {false, true})
    for (const uint64_t count : std::initializer_list<uint64_t>{0, 1, 31, 32, 33, 64}) {
      Pair pair(plan(reduces));
      Call call(pair, count);
      call.start();
      pair.sender->advance();
      EXPECT_EQ(pair.ring.header(0).kind == SlotKind::Inline, count <= kInlineBytes) << count;
      EXPECT_EQ(pair.ring.header(0).bytes, count);
      EXPECT_EQ(pair.slotUnwritten(0), count <= kInlineBytes || count >= 64) << count;
      EXPECT_EQ(pair.receiver->advance(), Progress::Done);
      EXPECT_EQ(pair.sender->advance(), Progress::Done);
      EXPECT_EQ(call.got, reduces ? sum(call.sent, call.own) : call.sent) << count;
    }
}

// Four chunks for one granule of data: three of them are empty and still take their turn.
TEST_P(DirectAccess, EmptyChunksAreMessagesToo) {
  for (const bool reduces : {false, true}) {
    PairPlan wide = plan(reduces);
    wide.chunks = 4;
    wide.slots = 4;
    Pair pair(wide);
    Call call(pair, 50, 0);
    call.start();
    pair.sender->advance();
    for (uint64_t message = 0; message < 4; ++message) {
      EXPECT_EQ(pair.ring.header(message).bytes, message == 0 ? 50U : 0U);
      EXPECT_EQ(pair.ring.header(message).chunk, message);
    }
    EXPECT_EQ(pair.receiver->advance(), Progress::Done);
    EXPECT_EQ(pair.sender->advance(), Progress::Done);
    EXPECT_EQ(call.got, reduces ? sum(call.sent, call.own) : call.sent);
  }
}

// Chunks that need many pieces, through two slots: each way has its turn at every slot many times.
TEST_P(DirectAccess, ManyPiecesThroughFewSlots) {
  for (const bool reduces : {false, true})
    for (const uint64_t directBytes : {uint64_t{0}, uint64_t{150}, UINT64_MAX}) {
      PairPlan many = plan(reduces);
      many.chunks = 3;
      many.slotBytes = 192;
      Pair pair(many);
      for (const uint64_t count : std::initializer_list<uint64_t>{1000, 5003}) {
        Call call(pair, count, directBytes);
        call.start();
        Progress sender = Progress::Moved, receiver = Progress::Moved;
        for (int i = 0; i < 1000 && (sender != Progress::Done || receiver != Progress::Done); ++i) {
          if (sender != Progress::Done) sender = pair.sender->advance();
          if (receiver != Progress::Done) receiver = pair.receiver->advance();
        }
        EXPECT_EQ(sender, Progress::Done);
        EXPECT_EQ(receiver, Progress::Done);
        EXPECT_EQ(call.got, reduces ? sum(call.sent, call.own) : call.sent);
      }
    }
}

TEST_P(DirectAccess, WhatTheSendingStepChangesIsNeverReferredTo) {
  const auto kindOf = [&](const PairPlan& wanted, const std::function<void(CallContext&)>& change) {
    Pair pair(wanted);
    Call call(pair, 1000);
    change(call.sending);
    pair.sender->start(call.sending, addBytes);
    pair.sender->advance();
    return pair.ring.header(0).kind;
  };
  const auto nothing = [](CallContext&) {};
  const auto scale = [](CallContext& context) { context.scaled = true; };
  const auto divide = [](CallContext& context) { context.divisor = 2; };
  PairPlan from = plan(true);
  EXPECT_EQ(kindOf(from, nothing), SlotKind::Reference);
  EXPECT_EQ(kindOf(from, scale), SlotKind::Staged);
  EXPECT_EQ(kindOf(from, divide), SlotKind::Reference) << "the division is not this step's";
  from.finalSend = true;
  EXPECT_EQ(kindOf(from, divide), SlotKind::Staged);
  EXPECT_EQ(kindOf(from, nothing), SlotKind::Reference);
  from.sendsOut = true;
  EXPECT_EQ(kindOf(from, scale), SlotKind::Reference) << "out is not scaled";
}

// An offer counts for exactly one message; `spoil` makes it another's.
TEST_P(DirectAccess, OffersForOtherMessagesAreIgnored) {
  const std::vector<std::function<void(Offer&)>> spoils = {
      [](Offer& offer) { offer.call ^= 1; }, [](Offer& offer) { offer.chunk ^= 1; },
      [](Offer& offer) { offer.piece ^= 1; }, [](Offer& offer) { offer.bytes ^= 1; }, [](Offer&) {}};
  for (size_t i = 0; i < spoils.size(); ++i) {
    const bool good = i + 1 == spoils.size();
    Pair pair(plan(false));
    Call call(pair, 1000);
    Bytes trap(1001, 0x77);
    Offer offer{};
    offer.call = call.sending.call;
    offer.bytes = 1000;
    offer.address = trap.data();
    spoils[i](offer);
    SlotReader(pair.ring, GetParam(), 0).offer(0, offer);
    pair.sender->start(call.sending, addBytes);
    pair.sender->advance();
    EXPECT_EQ(pair.ring.header(0).direct.placed, good ? 1U : 0U) << "field " << i;
    EXPECT_EQ(trap == Bytes(1001, 0x77), !good) << "field " << i;
  }
}

// An offer is there before its slot is free: a sender that had to wait for the slot never misses it.
TEST_P(DirectAccess, WhoeverWaitsForASlotFindsTheOffer) {
  PairPlan narrow = plan(false);
  narrow.slots = 1;
  narrow.slotBytes = 128;
  Pair pair(narrow);
  Call call(pair, 200'000);
  call.sending.referenceBytes = UINT64_MAX;  // what misses its offer is staged, and shows
  call.start();
  const auto run = [](BoundSchedule& end) {
    for (;;) {
      const Progress progress = end.advance();
      if (progress == Progress::Done || progress == Progress::Failed) return;
      if (progress == Progress::Waiting) std::this_thread::yield();
    }
  };
  std::thread receiver([&] { run(*pair.receiver); });
  run(*pair.sender);
  receiver.join();
  EXPECT_EQ(call.got, call.sent);
  EXPECT_TRUE(pair.slotUnwritten(0));
}

// ---- what does not fit is refused ----

TEST_P(DirectAccess, AForeignSlotIsRefusedBeforeAnythingIsWritten) {
  const std::vector<std::function<void(SlotHeader&)>> spoils = {
      [](SlotHeader& header) { header.call ^= 1; }, [](SlotHeader& header) { header.chunk ^= 1; },
      [](SlotHeader& header) { header.piece ^= 1; }, [](SlotHeader& header) { header.bytes ^= 64; }};
  for (size_t i = 0; i < spoils.size(); ++i)
    for (const bool reduces : {false, true}) {
      Pair pair(plan(reduces));
      Call call(pair, 1000, UINT64_MAX);
      call.start();
      pair.sender->advance();
      spoils[i](pair.ring.header(0));
      EXPECT_EQ(pair.receiver->advance(), Progress::Failed) << "field " << i;
      EXPECT_EQ(call.got, Bytes(1000, 0x11)) << "field " << i;
      EXPECT_EQ(*pair.ring.freed(0), 0U);
      EXPECT_EQ(pair.receiverTouches, 0U);
      const MachineFailure& failure = pair.receiver->failure();
      EXPECT_FALSE(failure.poisoned);
      EXPECT_EQ(failure.expectedChunk, 0U);
      EXPECT_EQ(failure.expectedBytes, 1000U);
      EXPECT_EQ(std::memcmp(&failure.found, &pair.ring.header(0), sizeof(SlotHeader)), 0);
    }
}

TEST_P(DirectAccess, EndsThatDisagreeOnTheOrderOfChunksFindOut) {
  PairPlan shifted = plan(false);
  shifted.chunks = 2;
  shifted.receivedChunk = 1;
  Pair pair(shifted);
  Call call(pair, 256);  // chunks of equal size
  call.start();
  pair.sender->advance();
  EXPECT_EQ(pair.receiver->advance(), Progress::Failed);
  EXPECT_EQ(pair.receiver->failure().found.chunk, 0U);
  EXPECT_EQ(pair.receiver->failure().expectedChunk, 1U);
  EXPECT_EQ(call.got, Bytes(256, 0x11));
}

// ---- the guard ----

uint32_t* watched = nullptr;
uint32_t touchingSeen = 0;

void watchingSum(const CombineArgs& args) {
  touchingSeen = *watched;
  addBytes(args);
}

TEST_P(DirectAccess, IsAnnouncedWhileItLastsAndOnlyThen) {
  for (const uint64_t directBytes : {uint64_t{64}, UINT64_MAX}) {
    Pair pair(plan(true));
    Call call(pair, 1000, directBytes);
    call.start(watchingSum);
    pair.sender->advance();
    EXPECT_EQ(pair.senderTouches, 0U);
    watched = &pair.receiverTouches;
    touchingSeen = 7;
    EXPECT_EQ(pair.receiver->advance(), Progress::Done);
    EXPECT_EQ(touchingSeen, directBytes == 64 ? 1U : 0U);
    EXPECT_EQ(pair.receiverTouches, 0U);
  }
}

TEST_P(DirectAccess, IsRefusedInAPoisonedCommunicator) {
  Pair reading(plan(true));
  Call read(reading, 1000);
  read.start();
  reading.sender->advance();
  reading.poison = 1;
  EXPECT_EQ(reading.receiver->advance(), Progress::Failed);
  EXPECT_TRUE(reading.receiver->failure().poisoned);
  EXPECT_EQ(reading.receiverTouches, 0U);
  EXPECT_EQ(read.got, Bytes(1000, 0x11));
  EXPECT_EQ(*reading.ring.freed(0), 0U);

  Pair writing(plan(false));
  Call write(writing, 1000);
  write.start();
  writing.poison = 1;
  EXPECT_EQ(writing.sender->advance(), Progress::Failed);
  EXPECT_TRUE(writing.sender->failure().poisoned);
  EXPECT_EQ(writing.senderTouches, 0U);
  EXPECT_EQ(write.got, Bytes(1000, 0x11));
  EXPECT_EQ(writing.receiver->advance(), Progress::Waiting) << "something was published";
}

TEST_P(DirectAccess, StagedDataMovesOnWhateverThePoison) {
  Pair pair(plan(true));
  Call call(pair, 1000, UINT64_MAX);
  pair.poison = 1;
  call.start();
  EXPECT_EQ(pair.sender->advance(), Progress::Done);
  EXPECT_EQ(pair.receiver->advance(), Progress::Done);
  EXPECT_EQ(call.got, sum(call.sent, call.own));
}

INSTANTIATE_TEST_SUITE_P(Both, DirectAccess, testing::Values(Protocol::Packet, Protocol::Bulk),
                         [](const testing::TestParamInfo<Protocol>& which) {
                           return std::string(which.param == Protocol::Packet ? "packet" : "bulk");
                         });

}  // namespace
}  // namespace topoccl::test
