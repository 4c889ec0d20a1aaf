// Ring all-reduce. Chunk c starts its way behind the rank at place c of the ring and collects that rank last:
// there it is complete, and goes round once more.
//
//   place 1 of 4       chunk 0: in -> next                  start it
//                      chunk 3: prev + in -> next           collect
//                      chunk 2: prev + in -> next
//                      chunk 1: prev + in -> out, next      complete
//                      chunk 0: prev -> out, next           hand on
//                      chunk 3: prev -> out, next
//                      chunk 2: prev -> out                 everyone has it
//
// A step frees the slot that it received only when it has a slot to send in, and all ranks start by sending:
// with one slot per connection nobody could go on.
#include <algorithm>

#include "algorithms/algorithms.h"
#include "algorithms/emit.h"

namespace topoccl {
namespace {

void emitRing(ScheduleBuilder& builder, const std::vector<int>& ring, int rank, int channel) {
  const auto ranks = static_cast<uint32_t>(ring.size());
  const auto place = static_cast<uint32_t>(std::find(ring.begin(), ring.end(), rank) - ring.begin());
  const Operand previous = builder.receive(ring[(place + ranks - 1) % ranks], channel, 0);
  const Operand next = builder.send(ring[(place + 1) % ranks], channel, 0);
  const auto chunk = [&](uint32_t step) {
    return static_cast<uint32_t>(channel) * ranks + (place + 2 * ranks - 1 - step) % ranks;
  };

  builder.lane();
  builder.step({kIn}, {next}, chunk(0));
  for (uint32_t step = 1; step < ranks - 1; ++step) builder.step({previous, kIn}, {next}, chunk(step));
  builder.step({previous, kIn}, {kOut, next}, chunk(ranks - 1), 1, true);
  for (uint32_t step = ranks; step < 2 * ranks - 2; ++step)
    builder.step({previous}, {kOut, next}, chunk(step));
  builder.step({previous}, {kOut}, chunk(2 * ranks - 2));
}

}  // namespace

Schedule emitRingAllReduce(const Layout& layout, int rank) {
  checkRank(layout, rank);
  if (layout.ranks == 1) return emitAlone();
  const auto channels = static_cast<uint32_t>(layout.channels.size());
  ScheduleBuilder builder(layout.ranks, rank, channels * static_cast<uint32_t>(layout.ranks));
  builder.minSlots(2);
  for (uint32_t channel = 0; channel < channels; ++channel)
    emitRing(builder, layout.channels[channel].ring, rank, static_cast<int>(channel));
  return builder.take();
}

}  // namespace topoccl
