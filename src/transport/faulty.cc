#include "transport/faulty.h"

#include <algorithm>
#include <new>
#include <utility>

#include "kernels/sync.h"

namespace topoccl {

namespace {

struct Free {
  void operator()(void* memory) const { ::operator delete (memory, std::align_val_t{kLineBytes}); }
};

std::unique_ptr<void, Free> makeRingMemory(RingShape shape) {
  const uint64_t bytes = RingView::bytes(shape);
  std::unique_ptr<void, Free> memory(::operator new (bytes, std::align_val_t{kLineBytes}));
  std::memset(memory.get(), 0, bytes);
  return memory;
}

void damage(SlotHeader& slot, Fault fault) {
  if (fault == Fault::CorruptHeader) slot.chunk ^= 1;
  if (fault != Fault::CorruptPayload || slot.bytes == 0) return;
  unsigned char* const data = slot.kind == SlotKind::Inline ? slot.payload : RingView::data(slot);
  data[slot.bytes / 2] ^= 4;
}

}  // namespace

// One connection this rank reads: upstream ring -> pump -> the ring the rank reads from.
struct FaultyConnector::Line {
  Line(const Connection& key, std::unique_ptr<void, Free> ringMemory, Pump carrier)
      : connection(key), memory(std::move(ringMemory)), pump(carrier) {}

  Connection connection;
  std::unique_ptr<void, Free> memory;
  Pump pump;
  std::thread thread;
};

FaultyConnector::FaultyConnector(std::unique_ptr<Connector> inner, int rank, Doorbell* doorbell,
                                 FatePolicy policy)
    : inner_(std::move(inner)), rank_(rank), bells_{doorbell}, policy_(std::move(policy)) {}

FaultyConnector::~FaultyConnector() {
  storeRelease(&stop_, 1U);
  for (auto& line : lines_) line->thread.join();
}

bool FaultyConnector::connect(const ConnectionPlan& plan, Endpoint& endpoint) {
  if (!inner_->connect(plan, endpoint)) return false;
  endpoint.direct = false;  // a reference would bypass the wire
  const auto& readers = plan.connection->readers;
  if (std::find(readers.begin(), readers.end(), rank_) == readers.end()) return true;

  const RingShape shape{plan.shape.slots, plan.shape.slotBytes, 1};
  auto memory = makeRingMemory(shape);
  const RingView ring(memory.get(), shape);
  Endpoint to;
  to.writer = SlotWriter(ring, plan.protocol);
  to.bells = bells_;
  to.bellCount = 1;
  lines_.push_back(std::make_unique<Line>(*plan.connection, std::move(memory), Pump(endpoint, to)));
  Line& line = *lines_.back();
  line.thread = std::thread([this, &line] { carry(line); });
  endpoint.reader = SlotReader(ring, plan.protocol, 0);
  return true;
}

void FaultyConnector::carry(Line& line) {
  for (uint64_t message = 0; loadAcquire(&stop_) == 0;) {
    if (!line.pump.ready()) {
      std::this_thread::yield();
      continue;
    }
    const SlotFate fate = policy_(line.connection, message++);
    if (fate.delay.count() > 0) std::this_thread::sleep_for(fate.delay);
    if (fate.fault == Fault::Drop) {
      line.pump.discard();
      continue;
    }
    damage(line.pump.copy(), fate.fault);
    line.pump.deliver();
  }
}

}  // namespace topoccl
