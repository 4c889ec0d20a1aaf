// A slot in memory that another process writes, whenever it likes.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "kernels/memory_machine.h"
#include "schedule/builder.h"
#include "schedule/stepper.h"
#include "support/ring_memory.h"

namespace topoccl::test {
namespace {

struct Copier {
  void copy(const CombineArgs& args) const { std::memcpy(args.outputs[0], args.inputs[0], args.count); }
  void combine(const CombineArgs&) const {}
};

// Two kinds that a header has by turns, and an address that nobody has.
class FickleHeader {
 public:
  explicit FickleHeader(SlotHeader& header) : kind_(header.kind) {
    header.direct.placed = 0;
    header.direct.reference = reinterpret_cast<const void*>(uintptr_t{64});
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested())
        for (const SlotKind kind : {SlotKind::Staged, SlotKind::Reference})
          kind_.store(kind, std::memory_order_relaxed);
    });
  }

 private:
  std::atomic_ref<SlotKind> kind_;
  std::jthread thread_;
};

TEST(HostileSlot, LeadsNowhereHoweverItChangesWhileItIsRead) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the race is what this is about";
#endif
  constexpr uint32_t kBytes = 128;
  ScheduleBuilder builder(2, 1, 1);
  builder.step({builder.receive(0, 0, 0)}, {kOut}, 0);
  const Schedule schedule = builder.take();
  const RingMemory memory({1, kBytes, 1});
  Endpoint endpoint;
  endpoint.reader = SlotReader(memory.view(), Protocol::Packet, 0);
  Endpoint* const ends[] = {&endpoint};
  std::vector<unsigned char> out(kBytes);
  CallContext context;
  context.out = out.data();
  context.map = makeChunkMap(kBytes, 1, 1, kBytes, 1);
  const void* inputs[1];
  void* outputs[1];
  MemoryMachine<SoloGroup, Copier> machine({}, ends, inputs, outputs);
  machine.start(context, {});

  SlotHeader& header = memory.view().header(0);
  header.bytes = kBytes;
  const FickleHeader fickle(header);
  int performed = 0;
  for (int i = 0; i < 300'000; ++i) {
    header.sequence = endpoint.reader.next() + 1;
    LaneCursor cursor;
    const LaneState state = advance(view(schedule), 0, cursor, machine).state;
    ASSERT_NE(state, LaneState::Waiting);
    performed += state == LaneState::Done ? 1 : 0;
  }
  EXPECT_GT(performed, 0);
}

}  // namespace
}  // namespace topoccl::test
