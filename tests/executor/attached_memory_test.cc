// References between processes, one step at a time: the receiver fetches what the sender refers to. Both are
// this process here, which changes nothing: the kernel copies by number of process and address.
#include <gtest/gtest.h>

#include <cerrno>
#include <tuple>

#include "support/int32_buffers.h"
#include "support/node_ranks.h"
#include "support/pair.h"

namespace topoccl::test {
namespace {

using Bytes = std::vector<unsigned char>;

constexpr uint64_t kCount = 3000;

Bytes pattern(unsigned seed) {
  Bytes bytes(kCount);
  for (uint64_t i = 0; i < kCount; ++i) bytes[i] = static_cast<unsigned char>(i * 31 + seed);
  return bytes;
}

void addBytes(const CombineArgs& args) {
  for (uint64_t i = 0; i < args.count; ++i) {
    unsigned char total = 0;
    for (uint32_t input = 0; input < args.inputCount; ++input)
      total = static_cast<unsigned char>(total + static_cast<const unsigned char*>(args.inputs[input])[i]);
    for (uint32_t output = 0; output < args.outputCount; ++output)
      static_cast<unsigned char*>(args.outputs[output])[i] = total;
  }
}

// Both ends of one call.
struct Call {
  explicit Call(const PairPlan& plan, uint64_t attachBytes = 64)
      : pair(plan),
        sending(pair.context(sent, senderOut, true, attachBytes)),
        receiving(pair.context(own, got, false, attachBytes)) {
    sending.referenceBytes = receiving.referenceBytes = UINT64_MAX;  // those are for one process
    pair.receiver->start(receiving, addBytes);
    pair.sender->start(sending, addBytes);
  }

  Pair pair;
  Bytes sent = pattern(1), senderOut = pattern(2), own = pattern(3);
  Bytes got = Bytes(kCount, 0x11);
  CallContext sending, receiving;
};

class AttachedMemory : public testing::TestWithParam<Protocol> {
 protected:
  static PairPlan plan(bool reduces) {
    PairPlan plan;
    plan.reduces = reduces;
    plan.protocol = GetParam();
    plan.attached = true;
    return plan;
  }
};

TEST_P(AttachedMemory, AReferenceIsFetchedToWhereItIsStored) {
  Call call(plan(false));
  EXPECT_EQ(call.pair.sender->advance(), Progress::Waiting) << "done before its buffer was read";
  EXPECT_EQ(call.pair.ring.header(0).kind, SlotKind::Reference);
  EXPECT_EQ(call.pair.ring.header(0).direct.reference, call.sent.data());
  call.sent[7] ^= 1;  // nothing was copied yet
  EXPECT_EQ(call.pair.receiver->advance(), Progress::Done);
  EXPECT_EQ(call.pair.sender->advance(), Progress::Done);
  EXPECT_EQ(call.got, call.sent);
  EXPECT_EQ(call.pair.receiverTouches, 0U) << "no guard: the kernel copies";
}

TEST_P(AttachedMemory, WhoReducesFetchesIntoTheSlot) {
  Call call(plan(true));
  call.pair.sender->advance();
  EXPECT_EQ(call.pair.ring.header(0).kind, SlotKind::Reference);
  EXPECT_EQ(call.pair.receiver->advance(), Progress::Done);
  for (uint64_t i = 0; i < kCount; ++i)
    ASSERT_EQ(call.got[i], static_cast<unsigned char>(call.sent[i] + call.own[i])) << i;
}

TEST_P(AttachedMemory, SmallOrUnwantedMessagesGoThroughTheSlot) {
  Call small(plan(false), kCount + 1);
  EXPECT_EQ(small.pair.sender->advance(), Progress::Done);
  EXPECT_EQ(small.pair.ring.header(0).kind, SlotKind::Staged);

  Call unwanted(plan(false));
  *unwanted.pair.ring.fetches(0) = 0;
  EXPECT_EQ(unwanted.pair.sender->advance(), Progress::Done) << "nothing to wait for: its data was copied";
  EXPECT_EQ(unwanted.pair.ring.header(0).kind, SlotKind::Staged);
  EXPECT_EQ(unwanted.pair.receiver->advance(), Progress::Done);
  EXPECT_EQ(unwanted.got, unwanted.sent);
}

// A message that was on its way when the reader changed its mind.
TEST_P(AttachedMemory, AReferenceCountsWhateverTheReaderWantsNow) {
  Call call(plan(false));
  call.pair.sender->advance();
  *call.pair.ring.fetches(0) = 0;
  EXPECT_EQ(call.pair.receiver->advance(), Progress::Done);
  EXPECT_EQ(call.got, call.sent);
}

TEST_P(AttachedMemory, WhatCannotBeReadEndsTheCall) {
  Call call(plan(false));
  call.pair.sender->advance();
  call.pair.ring.header(0).direct.reference = nullptr;
  EXPECT_EQ(call.pair.receiver->advance(), Progress::Failed);
  EXPECT_EQ(call.pair.receiver->failure().readError, EFAULT);
  EXPECT_EQ(call.pair.receiver->failure().expectedBytes, kCount);
  EXPECT_FALSE(call.pair.receiver->failure().poisoned);
  EXPECT_EQ(*call.pair.ring.freed(0), 0U);
  EXPECT_EQ(call.pair.sender->advance(), Progress::Waiting);
}

// Whoever gave up may have changed its buffer before it was read.
TEST_P(AttachedMemory, WhatWasFetchedFromAPoisonedCommunicatorIsRefused) {
  Call call(plan(false));
  call.pair.sender->advance();
  call.pair.poison = 1;
  EXPECT_EQ(call.pair.receiver->advance(), Progress::Failed);
  EXPECT_TRUE(call.pair.receiver->failure().poisoned);
  EXPECT_EQ(*call.pair.ring.freed(0), 0U);
}

TEST_P(AttachedMemory, ManyPiecesThroughFewSlotsInBothWays) {
  for (const bool reduces : {false, true}) {
    PairPlan many = plan(reduces);
    many.chunks = 3;
    many.slotBytes = 192;
    Call call(many, 150);
    Progress sender = Progress::Moved, receiver = Progress::Moved;
    for (uint32_t i = 0; i < 1000 && (sender != Progress::Done || receiver != Progress::Done); ++i) {
      *call.pair.ring.fetches(0) = i % 3 == 0 ? 0 : 1;
      if (sender != Progress::Done) sender = call.pair.sender->advance();
      if (receiver != Progress::Done) receiver = call.pair.receiver->advance();
    }
    EXPECT_EQ(sender, Progress::Done);
    EXPECT_EQ(receiver, Progress::Done);
    for (uint64_t i = 0; i < kCount; ++i)
      ASSERT_EQ(call.got[i], static_cast<unsigned char>(call.sent[i] + (reduces ? call.own[i] : 0))) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Both, AttachedMemory, testing::Values(Protocol::Packet, Protocol::Bulk),
                         [](const testing::TestParamInfo<Protocol>& which) {
                           return std::string(which.param == Protocol::Packet ? "packet" : "bulk");
                         });

// Every algorithm, reductions too, although the library doesn't have these fetch.
class AttachedRanks : public testing::TestWithParam<std::tuple<Algorithm, int>> {};

TEST_P(AttachedRanks, EndWithTheExactSum) {
  const auto [algorithm, ranks] = GetParam();
  NodeOptions options;
  options.fetching = Fetching::Always;
  NodeRanks node(ranks, Transport::Shm, {}, options);
  Request request;
  request.algorithm = algorithm;
  request.type = DataType::Int32;
  request.directBytes = 256;
  int call = 0;
  for (const uint64_t count : std::initializer_list<uint64_t>{1, 1009, 30011}) {
    request.count = count;
    for (const bool inPlace : {false, true}) {
      Int32Buffers buffers(ranks, count, call++, inPlace);
      const auto ends = node.run(request, buffers.ins, buffers.outs);
      for (int rank = 0; rank < ranks; ++rank) {
        ASSERT_EQ(ends[static_cast<size_t>(rank)], End::Done) << "rank " << rank;
        ASSERT_EQ(buffers.flawOf(rank), "");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, AttachedRanks,
                         testing::Combine(testing::Values(Algorithm::Ring, Algorithm::Tree,
                                                          Algorithm::MeshOneShot, Algorithm::MeshTwoShot),
                                          testing::Values(2, 3, 5)));

}  // namespace
}  // namespace topoccl::test
