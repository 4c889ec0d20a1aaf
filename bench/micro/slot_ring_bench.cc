// A message there and one back between two threads, through two slot rings.
//
//   round_trip/PROTOCOL/bytes:B/pinned:P      nanoseconds a round trip; up to 32 bytes travel in the header
//
// Unpinned threads may share a core for a while: then a round trip costs two time slices.
#include <benchmark/benchmark.h>
#include <sched.h>

#include <cstring>
#include <thread>
#include <vector>

#include "kernels/slot_ring.h"
#include "support/ring_memory.h"

namespace topoccl {
namespace {

constexpr uint32_t kSlots = 4;
constexpr uint32_t kSlotBytes = 64 << 10;
constexpr uint32_t kStop = UINT32_MAX;
constexpr uint32_t kSpinsBeforeYield = 10'000;

void stayOn(size_t core) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core, &only);
  ::sched_setaffinity(0, sizeof(only), &only);
}

template <class End>
void await(End& end) {
  for (uint32_t spins = 0; !end.ready(); ++spins) {
    relaxCore();
    if (spins > kSpinsBeforeYield) std::this_thread::yield();
  }
}

class Side {
 public:
  Side(RingView out, RingView in, Protocol protocol, uint32_t bytes)
      : writer_(out, protocol), reader_(in, protocol, 0), data_(bytes) {}

  void send(uint32_t bytes) {
    await(writer_);
    SlotHeader& header = writer_.header();
    header.bytes = bytes;
    if (bytes != kStop) std::memcpy(place(header), data_.data(), data_.size());
    writer_.publish();
  }
  uint32_t receive() {
    await(reader_);
    SlotHeader& header = reader_.header();
    const uint32_t bytes = header.bytes;
    if (bytes != kStop) std::memcpy(data_.data(), place(header), data_.size());
    reader_.free();
    return bytes;
  }

 private:
  unsigned char* place(SlotHeader& header) const {
    return data_.size() <= kInlineBytes ? header.payload : RingView::data(header);
  }

  SlotWriter writer_;
  SlotReader reader_;
  std::vector<unsigned char> data_;
};

void roundTrip(benchmark::State& state, Protocol protocol) {
  const auto bytes = static_cast<uint32_t>(state.range(0));
  const bool pinned = state.range(1) != 0;
  test::RingMemory there({kSlots, kSlotBytes, 1}), back({kSlots, kSlotBytes, 1});
  cpu_set_t allowed;
  ::sched_getaffinity(0, sizeof(allowed), &allowed);
  if (pinned) stayOn(0);
  std::thread echo([&] {
    if (pinned) stayOn(1);
    Side side(back.view(), there.view(), protocol, bytes);
    while (side.receive() != kStop) side.send(bytes);
  });
  Side side(there.view(), back.view(), protocol, bytes);
  for (auto _ : state) {
    side.send(bytes);
    benchmark::DoNotOptimize(side.receive());
  }
  side.send(kStop);
  echo.join();
  ::sched_setaffinity(0, sizeof(allowed), &allowed);
}

void arguments(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"bytes", "pinned"})->ArgsProduct({{8, 256, 4096, kSlotBytes}, {0, 1}})->UseRealTime();
}

BENCHMARK_CAPTURE(roundTrip, packet, Protocol::Packet)->Apply(arguments);
BENCHMARK_CAPTURE(roundTrip, bulk, Protocol::Bulk)->Apply(arguments);

}  // namespace
}  // namespace topoccl
