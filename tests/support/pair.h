// Two ranks, one connection, stepped by hand on one thread: the sender's `in` goes to the receiver, which
// stores it or reduces its own `in` into it. A test looks at the ring in between.
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "executor/bound_schedule.h"
#include "schedule/builder.h"
#include "support/ring_memory.h"

namespace topoccl::test {

struct PairPlan {
  bool reduces = false;    // the receiver: received + in -> out, else received -> out
  bool sendsOut = false;   // the sender: out -> receiver, else in -> receiver
  bool finalSend = false;  // the sender's step is the final one
  uint32_t chunks = 1;
  uint32_t receivedChunk = 0;  // where the receiver's first step expects to be
  uint32_t slots = 2;
  uint32_t slotBytes = 4096;
  Protocol protocol = Protocol::Packet;
  bool direct = true;
  bool attached =
      false;  // not direct, and the receiver fetches from the sender's memory, as of another process
};

class Pair {
 public:
  static constexpr unsigned char kUnwritten = 0xee;

  explicit Pair(const PairPlan& plan)
      : plan_(plan), memory_({plan.slots, plan.slotBytes, 1}), ring(memory_.view()) {
    for (uint64_t slot = 0; slot < plan.slots; ++slot)
      std::memset(RingView::data(ring.header(slot)), kUnwritten, plan.slotBytes);
    ends_[0] = end(true);
    ends_[1] = end(false);
    sender = std::make_unique<BoundSchedule>(senderSchedule(), std::vector{&ends_[0]});
    receiver = std::make_unique<BoundSchedule>(receiverSchedule(), std::vector{&ends_[1]});
  }

  // A call of `count` bytes from a buffer to a buffer; messages of `directBytes` go directly.
  CallContext context(const std::vector<unsigned char>& in, std::vector<unsigned char>& out, bool sending,
                      uint64_t directBytes = 64) {
    CallContext context;
    context.in = in.data();
    context.out = out.data();
    context.map = makeChunkMap(in.size(), 1, plan_.chunks, plan_.slotBytes, 1);
    context.call = 5;
    context.referenceBytes = context.offerBytes = context.attachBytes = directBytes;
    context.guard = {sending ? &senderTouches : &receiverTouches, &poison};
    return context;
  }

  bool slotUnwritten(uint64_t message) const {
    for (uint32_t i = 0; i < plan_.slotBytes; ++i)
      if (RingView::data(ring.header(message))[i] != kUnwritten) return false;
    return true;
  }

 private:
  Endpoint end(bool sending) const {
    Endpoint endpoint;
    if (sending)
      endpoint.writer = SlotWriter(ring, plan_.protocol);
    else
      endpoint.reader = SlotReader(ring, plan_.protocol, 0);
    endpoint.direct = plan_.direct && !plan_.attached;
    if (!sending && plan_.attached) {
      endpoint.memory = &*memoryOfSender;
      endpoint.distance.assumeFar();
      endpoint.reader.fetch(true);
    }
    return endpoint;
  }
  Schedule senderSchedule() const {
    ScheduleBuilder builder(2, 0, plan_.chunks);
    for (uint32_t chunk = 0; chunk < plan_.chunks; ++chunk)
      builder.step({plan_.sendsOut ? kOut : kIn}, {builder.send(1, 0, 0)}, chunk, 1, plan_.finalSend);
    return builder.take();
  }
  Schedule receiverSchedule() const {
    ScheduleBuilder builder(2, 1, plan_.chunks);
    for (uint32_t i = 0; i < plan_.chunks; ++i) {
      const uint32_t chunk = (plan_.receivedChunk + i) % plan_.chunks;
      std::vector<Operand> inputs{builder.receive(0, 0, 0)};
      if (plan_.reduces) inputs.push_back(kIn);
      builder.step(inputs, {kOut}, chunk);
    }
    return builder.take();
  }

  PairPlan plan_;
  RingMemory memory_;

 public:
  std::optional<PeerMemory> memoryOfSender = PeerMemory::attach(ownMemory());

 private:
  Endpoint ends_[2];

 public:
  RingView ring;
  std::unique_ptr<BoundSchedule> sender, receiver;
  uint32_t senderTouches = 0, receiverTouches = 0;
  uint64_t poison = 0;
};

}  // namespace topoccl::test
