// Full-mesh all-reduces, on broadcast connections: a slot is filled once and read by everyone.
//
// One-shot: every rank reduces everything, in the same order.
//
//   rank 1 of 3        in -> everyone
//                      from 0 + in + from 2 -> out
//
// In place a rank overwrites `in` as soon as it has everyone's data, when others may still be reading its
// own: slots must hold copies then (`copy in place`).
//
// Two-shot: rank c reduces chunk c and broadcasts it.
//
//   rank 1 of 3        scatter:  chunk 2: in -> 2
//                                chunk 0: in -> 0
//                      reduce:   chunk 1: from 0 + in + from 2 -> out, everyone
//                      store:    chunk 2: from 2 -> out
//                                chunk 0: from 0 -> out
//
// Scatter and store start behind the own rank, so that not all crowd rank 0. As three lanes each goes on to
// later pieces as far as its slots allow.
#include "algorithms/algorithms.h"
#include "algorithms/emit.h"
#include "algorithms/mesh_tags.h"

namespace topoccl {
namespace {

Operand broadcastTo(ScheduleBuilder& builder, int ranks, int rank, int channel) {
  return builder.send(othersOf(ranks, rank), channel, kBroadcastTag);
}

Operand broadcastFrom(ScheduleBuilder& builder, int ranks, int from, int channel) {
  return builder.receive(from, othersOf(ranks, from), channel, kBroadcastTag);
}

void emitOneShot(ScheduleBuilder& builder, int ranks, int rank, int channel) {
  const auto chunk = static_cast<uint32_t>(channel);
  builder.lane();
  builder.step({kIn}, {broadcastTo(builder, ranks, rank, channel)}, chunk);
  std::vector<Operand> terms;
  for (int from = 0; from < ranks; ++from)
    terms.push_back(from == rank ? kIn : broadcastFrom(builder, ranks, from, channel));
  builder.step(terms, {kOut}, chunk, 1, true);
}

void emitTwoShot(ScheduleBuilder& builder, int ranks, int rank, int channel) {
  const auto chunkOf = [&](int owner) { return static_cast<uint32_t>(channel * ranks + owner); };
  builder.lane();
  for (const int owner : othersFrom(ranks, rank))
    builder.step({kIn}, {builder.send(owner, channel, kScatterTag)}, chunkOf(owner));

  builder.lane();
  std::vector<Operand> terms;
  for (int from = 0; from < ranks; ++from)
    terms.push_back(from == rank ? kIn : builder.receive(from, channel, kScatterTag));
  builder.step(terms, {kOut, broadcastTo(builder, ranks, rank, channel)}, chunkOf(rank), 1, true);

  builder.lane();
  for (const int owner : othersFrom(ranks, rank))
    builder.step({broadcastFrom(builder, ranks, owner, channel)}, {kOut}, chunkOf(owner));
}

}  // namespace

Schedule emitMeshOneShotAllReduce(const Layout& layout, int rank, int) {
  checkRank(layout, rank);
  if (layout.ranks == 1) return emitAlone(true);
  const auto channels = static_cast<uint32_t>(layout.channels.size());
  ScheduleBuilder builder(layout.ranks, rank, channels);
  builder.copyInPlace();
  for (uint32_t channel = 0; channel < channels; ++channel)
    emitOneShot(builder, layout.ranks, rank, static_cast<int>(channel));
  return builder.take();
}

Schedule emitMeshTwoShotAllReduce(const Layout& layout, int rank, int) {
  checkRank(layout, rank);
  if (layout.ranks == 1) return emitAlone(true);
  const auto channels = static_cast<uint32_t>(layout.channels.size());
  ScheduleBuilder builder(layout.ranks, rank, channels * static_cast<uint32_t>(layout.ranks));
  for (uint32_t channel = 0; channel < channels; ++channel)
    emitTwoShot(builder, layout.ranks, rank, static_cast<int>(channel));
  return builder.take();
}

}  // namespace topoccl
