// How a rank and the others of its node find out why a call doesn't end: what each calls and waits for stands
// on the node's board. Here a rank shows its part, and compares the others'.
//
// begin(), look() and moved() are of the thread that runs the rank's works; the rest may be asked by any.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "communicator/node_set_up.h"
#include "transport/board.h"

namespace topoccl {

class NodeWatch {
 public:
  // `reportAfter`: how long calls stand still before they are reported; 0: never. `node` must live as long.
  NodeWatch(const NodeSetUp& node, int rank, std::chrono::milliseconds reportAfter);

  void begin(const CallDescriptor& call);

  // Another rank that called something else than this one, in the part of their histories that both have.
  std::optional<Error> disagreement() const;
  // Another rank that destroyed its communicator without having begun this collective.
  std::optional<Error> leftBefore(const CallDescriptor& call) const;

  // ---- while calls stand still ----

  // Again and again for each call that isn't done, while none of them moves: `progress` tells whether one
  // did. Says so where ranks wait for each other in a circle.
  std::optional<Error> look(const WaitEntry& entry, uint64_t progress);
  // Something moved, or the calls ended.
  void moved();

 private:
  using Clock = std::chrono::steady_clock;

  // A wait on the board: whose, and which of its entries.
  struct Spot {
    int nodeRank = -1;
    size_t entry = 0;
  };
  // Ranks in a circle when they were found: it is real when each has looked again since and nothing moved.
  struct Suspect {
    int nodeRank;
    uint64_t epoch;
    uint64_t beats;
  };
  using AllWaits = std::vector<RankWaits>;

  const Board& board() const { return node_.memory->board(); }
  int rankOf(int nodeRank) const { return node_.nodeRanks[static_cast<size_t>(nodeRank)]; }
  std::optional<Error> disagreementWith(int nodeRank, uint64_t number) const;

  std::optional<Error> endRound();
  std::optional<Error> deadlock();
  AllWaits allWaits() const;
  struct Awaiting {
    std::vector<Spot> spots;
    bool begun = true;  // the other has begun its part of the same call
  };
  Awaiting awaitedBy(const AllWaits& all, const Spot& place) const;
  std::vector<Spot> wayTo(const AllWaits& all, const Spot& from, const Spot& to) const;
  bool notBegun(int nodeRank, int byNodeRank, const CallDescriptor& call) const;
  std::vector<Spot> circle(const AllWaits& all) const;
  bool confirmed();
  void report(Clock::duration standing);
  std::string standingOf(int nodeRank, const RankWaits& waits, const CallDescriptor& latest) const;

  const NodeSetUp& node_;
  int nodeRank_;
  std::chrono::milliseconds reportAfter_;

  // One look at all calls is a round.
  std::vector<WaitEntry> round_;
  uint64_t signature_ = 0;      // of the round
  uint64_t lastSignature_ = 0;  // of the one before ...
  Clock::time_point since_{};   // ... and since when it has been like that
  Clock::time_point nextSearch_{};
  bool posted_ = false;
  bool reported_ = false;
  std::vector<Suspect> suspects_;
  std::optional<Error> verdict_;  // about them
};

}  // namespace topoccl
