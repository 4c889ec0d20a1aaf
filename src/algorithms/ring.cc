// Rings. A rank has one connection in and one out; place i of the ring sends to place i + 1.
//
// All-reduce. Chunk c starts its way behind the rank at place c and collects that rank last: there it is
// complete, and goes round once more.
//
//   place 1 of 4       chunk 0: in -> next                  start it
//                      chunk 3: prev + in -> next           collect
//                      chunk 2: prev + in -> next
//                      chunk 1: prev + in -> out, next      complete
//                      chunk 0: prev -> out, next           hand on
//                      chunk 3: prev -> out, next
//                      chunk 2: prev -> out                 everyone has it
//
// Reduce-scatter is its first half with a block per rank for chunks, all-gather the second. Broadcast and
// reduce use the ring as a chain that starts, or ends, at the root, and is open in front of, or behind it.
//
// A step frees the slot that it received only when it has a slot to send in, and all ranks start by sending:
// with one slot per connection nobody could go on. (Chains could, and two ranks where there is no way round.)
#include <algorithm>

#include "algorithms/algorithms.h"
#include "algorithms/emit.h"

namespace topoccl {
namespace {

// Of all-gather and reduce-scatter: with two ranks nothing is handed on.
uint32_t slotsOfRing(int ranks) {
  return ranks == 2 ? 1 : 2;
}

// One channel of a rank: its place, and the ranks at the places around it.
class Seat {
 public:
  Seat(ScheduleBuilder& builder, const std::vector<int>& ring, int rank, int channel)
      : builder_(builder), ring_(ring), channel_(channel), place_(placeOf(rank)) {}

  Operand previous() const { return builder_.receive(at(-1), channel_, 0); }
  Operand next() const { return builder_.send(at(1), channel_, 0); }

  // The rank that many places on.
  int at(int distance) const {
    const auto ranks = static_cast<int>(ring_.size());
    return ring_[static_cast<size_t>(((place_ + distance) % ranks + ranks) % ranks)];
  }

  // How many places behind `rank` this one is.
  int behind(int rank) const {
    const auto ranks = static_cast<int>(ring_.size());
    return (place_ - placeOf(rank) + ranks) % ranks;
  }

  int place() const { return place_; }

 private:
  int placeOf(int rank) const {
    return static_cast<int>(std::find(ring_.begin(), ring_.end(), rank) - ring_.begin());
  }

  ScheduleBuilder& builder_;
  const std::vector<int>& ring_;
  int channel_;
  int place_;
};

void emitAllReduce(ScheduleBuilder& builder, const Seat& place, int ranks, int channel) {
  const Operand previous = place.previous(), next = place.next();
  const auto chunk = [&](int step) {
    return static_cast<uint32_t>(channel * ranks + (place.place() + 2 * ranks - 1 - step) % ranks);
  };
  builder.step({kIn}, {next}, chunk(0));
  for (int step = 1; step < ranks - 1; ++step) builder.step({previous, kIn}, {next}, chunk(step));
  builder.step({previous, kIn}, {kOut, next}, chunk(ranks - 1), 1, true);
  for (int step = ranks; step < 2 * ranks - 2; ++step) builder.step({previous}, {kOut, next}, chunk(step));
  builder.step({previous}, {kOut}, chunk(2 * ranks - 2));
}

// Calls emit(builder, place, channel) for a lane per channel.
template <class Emit>
Schedule emitChannels(ScheduleBuilder builder, const Layout& layout, int rank, Emit&& emit) {
  for (size_t channel = 0; channel < layout.channels.size(); ++channel) {
    builder.lane();
    const auto number = static_cast<int>(channel);
    emit(builder, Seat(builder, layout.channels[channel].ring, rank, number), number);
  }
  return builder.take();
}

}  // namespace

Schedule emitRingAllReduce(const Layout& layout, int rank, int) {
  checkRank(layout, rank);
  if (layout.ranks == 1) return emitAlone(true);
  ScheduleBuilder builder(
      layout.ranks, rank,
      static_cast<uint32_t>(layout.channels.size()) * static_cast<uint32_t>(layout.ranks));
  builder.minSlots(2);
  return emitChannels(std::move(builder), layout, rank,
                      [&](ScheduleBuilder& lane, const Seat& place, int channel) {
                        emitAllReduce(lane, place, layout.ranks, channel);
                      });
}

Schedule emitRingAllGather(const Layout& layout, int rank, int) {
  checkRank(layout, rank);
  if (layout.ranks == 1) return emitAlone(false);
  ScheduleBuilder builder = blockBuilder(layout, rank);
  builder.minSlots(slotsOfRing(layout.ranks));
  return emitChannels(
      std::move(builder), layout, rank, [&](ScheduleBuilder& lane, const Seat& place, int channel) {
        const Operand previous = place.previous(), next = place.next();
        const auto chunk = [&](int distance) { return blockChunk(layout, channel, place.at(-distance)); };
        lane.step({kIn}, {kOut, next}, chunk(0));
        for (int step = 1; step < layout.ranks - 1; ++step) lane.step({previous}, {kOut, next}, chunk(step));
        lane.step({previous}, {kOut}, chunk(layout.ranks - 1));
      });
}

Schedule emitRingReduceScatter(const Layout& layout, int rank, int) {
  checkRank(layout, rank);
  if (layout.ranks == 1) return emitAlone(true);
  ScheduleBuilder builder = blockBuilder(layout, rank);
  builder.minSlots(slotsOfRing(layout.ranks));
  return emitChannels(
      std::move(builder), layout, rank, [&](ScheduleBuilder& lane, const Seat& place, int channel) {
        const Operand previous = place.previous(), next = place.next();
        const auto chunk = [&](int step) { return blockChunk(layout, channel, place.at(-1 - step)); };
        lane.step({kIn}, {next}, chunk(0));
        for (int step = 1; step < layout.ranks - 1; ++step) lane.step({previous, kIn}, {next}, chunk(step));
        lane.step({previous, kIn}, {kOut}, chunk(layout.ranks - 1), 1, true);
      });
}

Schedule emitRingBroadcast(const Layout& layout, int rank, int root) {
  checkRank(layout, rank, root);
  if (layout.ranks == 1) return emitAlone(false);
  ScheduleBuilder builder(layout.ranks, rank, static_cast<uint32_t>(layout.channels.size()));
  return emitChannels(
      std::move(builder), layout, rank, [&](ScheduleBuilder& lane, const Seat& place, int channel) {
        const int behind = place.behind(root);
        std::vector<Operand> outputs{kOut};
        if (behind != layout.ranks - 1) outputs.push_back(place.next());
        lane.step({behind == 0 ? kIn : place.previous()}, outputs, static_cast<uint32_t>(channel));
      });
}

Schedule emitRingReduce(const Layout& layout, int rank, int root) {
  checkRank(layout, rank, root);
  if (layout.ranks == 1) return emitAlone(true);
  ScheduleBuilder builder(layout.ranks, rank, static_cast<uint32_t>(layout.channels.size()));
  return emitChannels(
      std::move(builder), layout, rank, [&](ScheduleBuilder& lane, const Seat& place, int channel) {
        const int behind = place.behind(root);  // the first is right behind the root
        std::vector<Operand> terms;
        if (behind != 1) terms.push_back(place.previous());
        terms.push_back(kIn);
        const bool isRoot = behind == 0;
        lane.step(terms, {isRoot ? kOut : place.next()}, static_cast<uint32_t>(channel), 1, isRoot);
      });
}

}  // namespace topoccl
