// All-gather by doubling and reduce-scatter by halving, for any number of ranks (J. Bruck et al., "Efficient
// algorithms for all-to-all communications in multiport message-passing systems", 1997): log2(ranks) rounds.
//
// All-gather. Before the round of distance d a rank has the d blocks from its own on; it sends them to the
// rank d before it and gets the next d from the rank d behind it, in the last round only as many as it lacks.
//
//   rank 1 of 5        d = 1   in[1] -> out[1], 0               d = 2   out[1-2] -> 4
//                              from 2 -> out[2]                         from 3 -> out[3-4]
//                                                               d = 4   out[1] -> 2
//                                                                       from 0 -> out[0]
//
// Reduce-scatter is the same backwards, with sums: in the round of distance d a rank sends what it has for
// the blocks from d behind its own on, and adds what it gets for the blocks from its own on.
//
// Blocks wrap around behind the last rank: a message is cut there. Scratch chunks have the numbers of the
// chunks that they sum. Everyone sends before it receives.
#include <algorithm>
#include <bit>

#include "algorithms/algorithms.h"
#include "algorithms/emit.h"

namespace topoccl {
namespace {

// What a round moves: the blocks [from, from + count) counted from the receiver's own.
struct Round {
  int distance = 0;
  int count = 0;
};

std::vector<Round> doublingRounds(int ranks) {
  std::vector<Round> rounds;
  for (int distance = 1; distance < ranks; distance *= 2)
    rounds.push_back({distance, std::min(distance, ranks - distance)});
  return rounds;
}

// Blocks in the largest message of any rank: one of them does not wrap in the longest round.
uint32_t longestRound(int ranks) {
  int longest = 0;
  for (const Round round : doublingRounds(ranks)) longest = std::max(longest, round.count);
  return static_cast<uint32_t>(longest);
}

// Cuts [0, count) where one of both ends goes over from sums in scratch to own data.
std::vector<BlockRun> evenRuns(const Round& round, int summed) {
  std::vector<int> cuts{0, round.count};
  for (const int cut : {summed, summed - round.distance})
    if (cut > 0 && cut < round.count) cuts.push_back(cut);
  std::sort(cuts.begin(), cuts.end());
  std::vector<BlockRun> even;
  for (size_t i = 1; i < cuts.size(); ++i)
    if (cuts[i] > cuts[i - 1]) even.push_back({cuts[i - 1], cuts[i] - cuts[i - 1]});
  return even;
}

class Emitter {
 public:
  Emitter(ScheduleBuilder& builder, const Layout& layout, int rank, int channel)
      : builder_(builder), layout_(layout), rank_(rank), channel_(channel) {
    builder_.lane();
  }

  void gather() {
    bool first = true;
    for (const Round round : doublingRounds(layout_.ranks)) {
      for (const BlockRun run : runs(rank_, 0, round.count)) {
        const Operand peer = builder_.send(near(-round.distance), channel_, 0);
        if (std::exchange(first, false))
          step({kIn}, {kOut, peer}, run);
        else
          step({kOut}, {peer}, run);
      }
      for (const BlockRun run : runs(rank_, round.distance, round.count))
        step({builder_.receive(near(round.distance), channel_, 0)}, {kOut}, run);
    }
  }

  void reduceScatter() {
    std::vector<Round> rounds = doublingRounds(layout_.ranks);
    std::reverse(rounds.begin(), rounds.end());
    int summed = 0;  // so many blocks from the own on are sums in scratch
    for (const Round round : rounds) {
      sendSums(round, summed);
      addSums(round, summed);
      summed = std::max(summed, round.count);
    }
  }

 private:
  int near(int distance) const { return (rank_ + distance + layout_.ranks) % layout_.ranks; }

  // The blocks [from, from + count) counted from `own`, cut where they wrap.
  std::vector<BlockRun> runs(int own, int from, int count) const {
    return blockRuns(layout_.ranks, own + from, count);
  }

  void sendSums(const Round& round, int summed) {
    const Operand peer = builder_.send(near(round.distance), channel_, 0);
    for (const BlockRun even : evenRuns(round, summed)) {
      const int from = round.distance + even.first;
      for (const BlockRun run : runs(rank_, from, even.count))
        step({from < summed ? kScratch : kIn}, {peer}, run);
    }
  }

  void addSums(const Round& round, int summed) {
    const Operand peer = builder_.receive(near(-round.distance), channel_, 0);
    const bool last = round.distance == 1;
    for (const BlockRun even : evenRuns(round, summed))
      for (const BlockRun run : runs(rank_, even.first, even.count))
        step({even.first < summed ? kScratch : kIn, peer}, {last ? kOut : kScratch}, run, last);
  }

  void step(const std::vector<Operand>& inputs, const std::vector<Operand>& outputs, BlockRun run,
            bool final = false) {
    builder_.step(inputs, outputs, blockChunk(layout_, channel_, run.first), static_cast<uint32_t>(run.count),
                  final);
  }

  ScheduleBuilder& builder_;
  const Layout& layout_;
  int rank_;
  int channel_;
};

// Messages that a rank sends in one round before it receives, those apart that are cut where blocks wrap.
uint32_t messagesPerRound(int ranks) {
  size_t most = 1;
  int summed = 0;
  std::vector<Round> rounds = doublingRounds(ranks);
  std::reverse(rounds.begin(), rounds.end());
  for (const Round& round : rounds) {
    most = std::max(most, evenRuns(round, summed).size());
    summed = std::max(summed, round.count);
  }
  return static_cast<uint32_t>(most);
}

}  // namespace

Schedule emitDoublingAllGather(const Layout& layout, int rank, int) {
  checkRank(layout, rank);
  if (layout.ranks == 1) return emitAlone(false);
  ScheduleBuilder builder = blockBuilder(layout, rank);
  builder.slotChunks(longestRound(layout.ranks));
  for (size_t channel = 0; channel < layout.channels.size(); ++channel)
    Emitter(builder, layout, rank, static_cast<int>(channel)).gather();
  return builder.take();
}

Schedule emitHalvingReduceScatter(const Layout& layout, int rank, int) {
  checkRank(layout, rank);
  if (layout.ranks == 1) return emitAlone(true);
  ScheduleBuilder builder = blockBuilder(layout, rank);
  builder.minSlots(messagesPerRound(layout.ranks));
  builder.slotChunks(longestRound(layout.ranks));
  if (layout.ranks > 2)
    builder.scratch(static_cast<uint32_t>(layout.ranks) * static_cast<uint32_t>(layout.channels.size()));
  for (size_t channel = 0; channel < layout.channels.size(); ++channel)
    Emitter(builder, layout, rank, static_cast<int>(channel)).reduceScatter();
  return builder.take();
}

}  // namespace topoccl
