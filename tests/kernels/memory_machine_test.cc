// The memory machine as a group of threads shares it: what a CUDA block does, on the host. The rank talks to
// itself through one ring, so that one machine sees both ends.
#include "kernels/memory_machine.h"

#include <gtest/gtest.h>

#include <barrier>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "kernels/portable_combine.h"
#include "schedule/stepper.h"
#include "support/ring_memory.h"

namespace topoccl::test {
namespace {

constexpr uint64_t kThreads = 4;
constexpr uint32_t kSend = 0;
constexpr uint32_t kReceive = 1;

class ThreadGroup {
 public:
  ThreadGroup() = default;
  ThreadGroup(uint64_t rank, std::barrier<>& barrier) : rank_(rank), barrier_(&barrier) {}
  uint64_t rank() const { return rank_; }
  uint64_t size() const { return kThreads; }
  void sync() const { barrier_->arrive_and_wait(); }

 private:
  uint64_t rank_ = 0;
  std::barrier<>* barrier_ = nullptr;
};

thread_local ThreadGroup thisThread;

// What the machine and its mover hold: whichever thread asks is the one that is meant.
struct CurrentGroup {
  uint64_t rank() const { return thisThread.rank(); }
  uint64_t size() const { return thisThread.size(); }
  void sync() const { thisThread.sync(); }
};
static_assert(Group<CurrentGroup>);

struct GroupMover {
  void combine(const CombineArgs& args) const { portableCombine<Int32, Sum>(args, CurrentGroup()); }
  void copy(const CombineArgs& args) const { portableCombine<Raw<uint8_t>, First>(args, CurrentGroup()); }
};

struct Trial {
  uint64_t count = 0;
  uint32_t chunks = 1;
  uint32_t span = 1;
  bool reduces = false;  // received + in -> out, else received -> out
  uint64_t directBytes = UINT64_MAX;
  uint32_t slots = 2;
  uint32_t slotBytes = 512;
};

std::ostream& operator<<(std::ostream& out, const Trial& trial) {
  return out << trial.count << " elements, " << trial.chunks << " chunks, span " << trial.span
             << (trial.reduces ? ", reduce" : ", copy") << ", direct from " << trial.directBytes << ", "
             << trial.slots << " slots";
}

class GroupMachine : public testing::TestWithParam<Protocol> {
 protected:
  // Lane 0 sends every chunk, lane 1 takes them in.
  static Schedule scheduleOf(const Trial& trial) {
    Schedule schedule;
    schedule.chunks = trial.chunks;
    schedule.lanes = {{0, trial.chunks / trial.span}, {trial.chunks / trial.span, trial.chunks / trial.span}};
    for (uint32_t chunk = 0; chunk < trial.chunks; chunk += trial.span)
      add(schedule, {{Place::In}}, {{Place::Send, kSend}}, chunk, trial.span);
    for (uint32_t chunk = 0; chunk < trial.chunks; chunk += trial.span) {
      std::vector<Operand> inputs{{Place::Receive, kReceive}};
      if (trial.reduces) inputs.push_back({Place::In});
      add(schedule, inputs, {{Place::Out}}, chunk, trial.span);
    }
    return schedule;
  }

  static void add(Schedule& schedule, const std::vector<Operand>& inputs, const std::vector<Operand>& outputs,
                  uint32_t chunk, uint32_t span) {
    Step step;
    step.firstOperand = static_cast<uint32_t>(schedule.operands.size());
    step.inputCount = static_cast<uint32_t>(inputs.size());
    step.outputCount = static_cast<uint32_t>(outputs.size());
    step.inChunk = step.outChunk = chunk;
    step.span = span;
    schedule.operands.insert(schedule.operands.end(), inputs.begin(), inputs.end());
    schedule.operands.insert(schedule.operands.end(), outputs.begin(), outputs.end());
    schedule.steps.push_back(step);
  }

  // Runs the trial in a group and returns what it wrote.
  static std::vector<int32_t> run(const Trial& trial, const std::vector<int32_t>& in) {
    const Schedule schedule = scheduleOf(trial);
    const ScheduleView program{schedule.lanes.data(), 2, schedule.steps.data(), schedule.operands.data()};
    RingMemory memory({trial.slots, trial.slotBytes, 1});
    std::vector<int32_t> out(in.size(), -1);
    std::vector<uint32_t> offerChunks;
    for (uint32_t chunk = 0; chunk < trial.chunks; ++chunk) offerChunks.push_back(chunk);

    Endpoint endpoints[2];
    endpoints[kSend].writer = SlotWriter(memory.view(), GetParam());
    endpoints[kReceive].reader = SlotReader(memory.view(), GetParam(), 0);
    endpoints[kSend].direct = endpoints[kReceive].direct = true;
    if (!trial.reduces && trial.span == 1) {
      endpoints[kReceive].offerChunks = offerChunks.data();
      endpoints[kReceive].offerCount = trial.chunks;
    }

    uint32_t touching = 0;
    uint64_t poison = 0;
    CallContext context;
    context.in = reinterpret_cast<const unsigned char*>(in.data());
    context.out = reinterpret_cast<unsigned char*>(out.data());
    context.elementBytes = 4;
    context.map = makeChunkMap(in.size(), 4, trial.chunks, trial.slotBytes, trial.span);
    context.call = 77;
    context.referenceBytes = context.offerBytes = trial.directBytes;
    context.guard = {&touching, &poison};

    Endpoint* const ends[] = {&endpoints[0], &endpoints[1]};
    const void* inputs[4];
    void* outputs[4];
    MemoryMachine<CurrentGroup, GroupMover> machine({}, ends, inputs, outputs);
    machine.start(context, {});
    if (endpoints[kReceive].offerCount != 0) machine.offerAhead(endpoints[kReceive], 0);
    runThreads(program, machine);
    EXPECT_EQ(touching, 0U);
    EXPECT_TRUE(endpoints[kSend].writer.freedUpTo(endpoints[kSend].writer.next()));
    return out;
  }

  static void runThreads(const ScheduleView& program, MemoryMachine<CurrentGroup, GroupMover>& machine) {
    std::barrier<> barrier(kThreads);
    std::vector<std::jthread> threads;
    for (uint64_t rank = 0; rank < kThreads; ++rank)
      threads.emplace_back([&, rank] {
        thisThread = ThreadGroup(rank, barrier);
        LaneCursor cursors[2];
        bool done[2] = {false, false};
        while (!done[0] || !done[1])
          for (uint32_t lane = 0; lane < 2; ++lane)
            if (!done[lane])
              done[lane] = advance(program, lane, cursors[lane], machine).state == LaneState::Done;
      });
  }

  static void expectExact(const Trial& trial) {
    std::vector<int32_t> in;
    for (uint64_t i = 0; i < trial.count; ++i) in.push_back(static_cast<int32_t>(i * 7 + 3));
    const std::vector<int32_t> out = run(trial, in);
    for (uint64_t i = 0; i < trial.count; ++i)
      ASSERT_EQ(out[i], trial.reduces ? 2 * in[i] : in[i]) << "element " << i << " of " << trial;
  }
};

TEST_P(GroupMachine, CopiesAndReduces) {
  for (const bool reduces : {false, true})
    for (const uint64_t count : std::initializer_list<uint64_t>{0, 1, 7, 9, 64, 257})
      expectExact({.count = count, .reduces = reduces});
}

TEST_P(GroupMachine, CopiesAndReducesWithoutSlots) {
  for (const bool reduces : {false, true})
    for (const uint64_t count : std::initializer_list<uint64_t>{1, 300})
      expectExact({.count = count, .chunks = 3, .reduces = reduces, .directBytes = 64, .slots = 4});
}

// Steps of several chunks, of which the last pieces are empty in some chunks and not in others: every piece
// of every chunk is an extent of its own.
TEST_P(GroupMachine, MovesSpansOfManyPieces) {
  for (const bool reduces : {false, true})
    for (const uint64_t count : std::initializer_list<uint64_t>{0, 5, 300})
      expectExact({.count = count, .chunks = 8, .span = 4, .reduces = reduces, .slotBytes = 256});
}

// ---- one thread: when readers learn of a message ----

const uint64_t* published = nullptr;
uint64_t publishedAtCopy = 77;

struct WatchingMover {
  void combine(const CombineArgs& args) const { copy(args); }
  void copy(const CombineArgs& args) const {
    publishedAtCopy = *published;
    hostCopy(args);
  }
};

// Performs in -> {send, out} of 1000 bytes for two readers in this process, of which some have offered a
// destination.
void sendAndStore(uint32_t offers) {
  std::vector<unsigned char> in(1000, 7), out(1000, 1), offered[2] = {out, out};
  RingMemory memory({2, 1024, 2});
  Endpoint endpoint;
  endpoint.writer = SlotWriter(memory.view(), Protocol::Bulk);
  endpoint.direct = true;
  uint32_t touching = 0;
  const uint64_t poison = 0;
  CallContext context;
  context.in = in.data();
  context.out = out.data();
  context.map = makeChunkMap(in.size(), 1, 1, 1024, 1);
  context.call = 77;
  context.referenceBytes = context.offerBytes = 64;
  context.guard = {&touching, &poison};
  for (uint32_t reader = 0; reader < offers; ++reader) {
    Offer offer{};
    offer.call = 77;
    offer.bytes = 1000;
    offer.address = offered[reader].data();
    SlotReader(memory.view(), Protocol::Bulk, reader).offer(0, offer);
  }
  Endpoint* const ends[] = {&endpoint};
  const void* inputs[4];
  void* outputs[6];
  MemoryMachine<SoloGroup, WatchingMover> machine({}, ends, inputs, outputs);
  machine.start(context, {});
  Step step;
  step.inputCount = 1;
  step.outputCount = 2;
  const Operand from{Place::In}, to[] = {{Place::Send, 0}, {Place::Out}};
  published = memory.view().published();
  ASSERT_TRUE(machine.perform(step, &from, to, 0));
  EXPECT_EQ(*published, 1U);
  EXPECT_EQ(memory.view().header(0).kind, offers == 2 ? SlotKind::Staged : SlotKind::Reference);
  EXPECT_EQ(out, in);
  for (uint32_t reader = 0; reader < offers; ++reader) EXPECT_EQ(offered[reader], in);
}

TEST(SoloMachine, PublishesReferencesBeforeItCopiesForItself) {
  sendAndStore(0);
  EXPECT_EQ(publishedAtCopy, 1U);
}

// Whose destination is filled believes that its data is there.
TEST(SoloMachine, PublishesNothingBeforeAllOfferedDestinationsAreFilled) {
  for (const uint32_t offers : {1U, 2U}) {
    sendAndStore(offers);
    EXPECT_EQ(publishedAtCopy, 0U) << offers << " offers";
  }
}

std::string protocolName(const testing::TestParamInfo<Protocol>& info) {
  return info.param == Protocol::Packet ? "packet" : "bulk";
}

INSTANTIATE_TEST_SUITE_P(Both, GroupMachine, testing::Values(Protocol::Packet, Protocol::Bulk), protocolName);

}  // namespace
}  // namespace topoccl::test
