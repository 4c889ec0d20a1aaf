// Recursive halving (reduce-scatter), then doubling (all-gather). With p the largest power of two that is not
// above the number of ranks, p ranks are active and a channel has p chunks. Active rank v and its partner
// v ^ m exchange halves of the 2m chunks that both still work on, for m = p/2, ..., 2, 1; each keeps the half
// with chunk v. Then the same backwards with results. Messages span m chunks: 2 log2(p) messages in all.
//
//   active 1 of 4      0-1 -> 2-3 (active 3)     in[2-3] -> 3
//                                                in[0-1] + from 3 -> scratch
//                      0 | 1      (active 0)     scratch[0] -> 0
//                                                from 0 + scratch[1] -> out              complete
//                                                out[1] -> 0
//                                                from 0 -> out[0]
//                                                out[0-1] -> 3
//                                                from 3 -> out[2-3]
//
// The ranks beyond p are folded: ranks 2i and 2i + 1 form pairs, as many as there are ranks too many. The odd
// one hands everything to the even one at the start and gets the result at the end, both in halves of p/2
// chunks like the first exchange, with which they fuse: the largest span is then the same on all ranks.
//
// Scratch chunks have the numbers of the chunks that they sum.
#include <bit>

#include "algorithms/algorithms.h"
#include "algorithms/emit.h"

namespace topoccl {
namespace {

// The chunks [first, first + count) of a channel.
struct Block {
  uint32_t first = 0;
  uint32_t count = 0;
};

// Who is active, and as what.
struct Folding {
  explicit Folding(int ranks)
      : active(static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)))), pairs(ranks - active) {}

  bool paired(int rank) const { return rank < 2 * pairs; }
  bool folded(int rank) const { return paired(rank) && rank % 2 == 1; }
  int activeOf(int rank) const { return paired(rank) ? rank / 2 : rank - pairs; }
  int rankOf(int member) const { return member < pairs ? 2 * member : member + pairs; }

  int active;
  int pairs;
};

// The half of the 2m chunks around chunk `member` that does or doesn't contain it.
Block kept(uint32_t member, uint32_t m) {
  return {member & ~(m - 1), m};
}
Block given(uint32_t member, uint32_t m) {
  return kept(member ^ m, m);
}

class Emitter {
 public:
  Emitter(ScheduleBuilder& builder, const Folding& folding, int rank, int channel)
      : builder_(builder),
        folding_(folding),
        rank_(rank),
        channel_(channel),
        member_(static_cast<uint32_t>(folding.activeOf(rank))),
        half_(static_cast<uint32_t>(folding.active) / 2) {}

  // The odd rank of a pair. Chunks go out in the order in which the even one takes them.
  void emitFolded() {
    const int host = rank_ - 1;
    builder_.lane();
    for (const Block block : {given(member_, half_), kept(member_, half_)}) step({kIn}, {send(host)}, block);
    for (const Block block : {kept(member_, half_), given(member_, half_)})
      step({receive(host)}, {kOut}, block);
  }

  void emitActive() {
    builder_.lane();
    for (uint32_t m = half_; m >= 1; m /= 2) halve(m);
    for (uint32_t m = 1; m <= half_; m *= 2) doubleUp(m);
  }

 private:
  bool fuses(uint32_t m) const { return m == half_ && folding_.paired(rank_); }

  void halve(uint32_t m) {
    const Operand mine = m == half_ ? kIn : kScratch;
    std::vector<Operand> terms{mine};
    if (fuses(m)) terms.push_back(receive(rank_ + 1));
    step(terms, {send(partner(m))}, given(member_, m));
    // Ascending by rank: own and folded data are neighbours, the partner's come before or after both.
    const bool before = partner(m) < rank_;
    terms.insert(before ? terms.begin() : terms.end(), receive(partner(m)));
    step(terms, {m == 1 ? kOut : kScratch}, kept(member_, m), m == 1);
  }

  void doubleUp(uint32_t m) {
    std::vector<Operand> outputs{send(partner(m))};
    if (fuses(m)) outputs.push_back(send(rank_ + 1));
    step({kOut}, outputs, kept(member_, m));
    outputs[0] = kOut;
    step({receive(partner(m))}, outputs, given(member_, m));
  }

  int partner(uint32_t m) const { return folding_.rankOf(static_cast<int>(member_ ^ m)); }
  Operand send(int to) { return builder_.send(to, channel_, 0); }
  Operand receive(int from) { return builder_.receive(from, channel_, 0); }

  void step(const std::vector<Operand>& inputs, const std::vector<Operand>& outputs, Block block,
            bool final = false) {
    const uint32_t first = static_cast<uint32_t>(channel_ * folding_.active) + block.first;
    builder_.step(inputs, outputs, first, block.count, final);
  }

  ScheduleBuilder& builder_;
  const Folding& folding_;
  int rank_;
  int channel_;
  uint32_t member_;
  uint32_t half_;
};

}  // namespace

Schedule emitHalvingDoublingAllReduce(const Layout& layout, int rank, int) {
  checkRank(layout, rank);
  if (layout.ranks == 1) return emitAlone(true);
  const Folding folding(layout.ranks);
  const auto channels = static_cast<uint32_t>(layout.channels.size());
  const uint32_t chunks = channels * static_cast<uint32_t>(folding.active);
  ScheduleBuilder builder(layout.ranks, rank, chunks);
  if (!folding.folded(rank) && folding.active > 2) builder.scratch(chunks);
  for (uint32_t channel = 0; channel < channels; ++channel) {
    Emitter emitter(builder, folding, rank, static_cast<int>(channel));
    if (folding.folded(rank))
      emitter.emitFolded();
    else
      emitter.emitActive();
  }
  return builder.take();
}

}  // namespace topoccl
