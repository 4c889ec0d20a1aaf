// What the ranks of a node tell each other without messages: one line each of what they call, what they wait
// for and why they gave up. Written by its rank, read by all.
//
// Readers check what must be whole (a call, a list of waits) and take nothing where it changes under them.
// The memory is the peers' as well, so nothing read from here is an address, an index or a length unchecked.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/doorbell.h"

namespace topoccl {

// A call as its rank posted it: what peers compare and print when slots don't match or nothing arrives.
struct CallDescriptor {
  uint64_t number = 0;   // of this communicator's collectives, or of those to or from this peer, from 1
  uint64_t history = 0;  // of a collective: hash of it and of all before it; what its slots carry
  uint64_t count = 0;
  uint8_t collective = 0;  // a Collective, or one of the two below
  uint8_t type = 0;
  uint8_t op = 0;
  uint8_t unused = 0;
  int32_t root = -1;  // or peer

  static constexpr uint8_t kSend = 254, kReceive = 255;
  bool isPeerCall() const { return collective >= kSend; }
  bool operator==(const CallDescriptor&) const = default;
};

// What a rank's call waits for.
enum class Awaited : uint32_t {
  Connection,  // the peer's end of a connection
  Data,
  Slot,    // a free one
  Reader,  // the peer still reads this rank's buffers
};

struct WaitEntry {
  CallDescriptor call;
  int32_t peer = -1;  // rank
  Awaited what = Awaited::Connection;
  uint32_t lane = 0;  // of data and slots, likewise step and piece
  uint32_t step = 0;
  uint64_t piece = 0;
};

// What a rank waits for, all at once: none of its calls has moved for a while.
struct RankWaits {
  uint64_t epoch = 0;  // another one for other waits; 0: it doesn't wait, or not for long
  uint64_t beats = 0;  // how often the rank looked and found them standing, over all epochs
  std::vector<WaitEntry> entries;
};

// The ranks of a new communicator that is being made of this one's.
struct Meeting {
  uint64_t members = 0;  // hash that tells them from other ranks that meet
  uint64_t count = 0;    // the how-manieth time of these
  bool operator==(const Meeting&) const = default;
};

// A rank's part in making a communicator of some of this one's ranks, without those that it excludes: they
// may be dead, and so may be whoever else could carry messages.
struct Invitation {
  // Joins: it waits for the others, `text` has a bit for each node rank that it thinks takes part. Objects:
  // the same, but it has seen that another one thinks of other ranks. Joined: it has what it waited for.
  // Invites: that too, `text` is an id. Differs, Fails: it gave up, for that or another reason, which is
  // `text`.
  enum Kind : uint64_t { None, Joins, Objects, Joined, Invites, Differs, Fails };

  bool waits() const { return kind == Joins || kind == Objects; }
  bool gaveUp() const { return kind == Differs || kind == Fails; }

  Meeting meeting;
  uint64_t kind = None;
  std::array<char, 128> text{};
};

// Cut to what fits.
void setText(Invitation& invitation, std::string_view text);
std::string textOf(const Invitation& invitation);

struct alignas(64) TouchLine {
  uint32_t touching;
  uint32_t left;     // 1 once the rank has destroyed its communicator
  uint32_t process;  // its id, for people
};

class Board {
 public:
  static constexpr uint64_t kHistory = 8;  // calls that can be looked up
  static constexpr size_t kMostWaits = 8;  // that a rank posts
  static constexpr uint64_t kInvitations = 8;
  static constexpr size_t kWordsBytes = 512;  // of last words

  static uint64_t bytes(int nodeRanks);

  Board() = default;
  // Zeroed memory of bytes(nodeRanks), or another rank's board.
  Board(void* memory, int nodeRanks);

  int nodeRanks() const { return nodeRanks_; }
  Doorbell& doorbell(int nodeRank) const;
  TouchLine& touch(int nodeRank) const;

  // 0, or the first failure of any rank: (node rank + 1) | code << 32 | whose fault << 40 (member.h).
  uint64_t* poison() const;
  // Which standstill was reported last: whoever changes it reports.
  uint64_t* reported() const;

  // A collective that `nodeRank` is about to do. Numbers count up by one.
  void post(int nodeRank, const CallDescriptor& call) const;
  // Nothing if it is none of the last kHistory, or changes.
  std::optional<CallDescriptor> posted(int nodeRank, uint64_t number) const;
  // The newest; number 0 if there is none, or they come too fast to be read.
  CallDescriptor lastPosted(int nodeRank) const;

  // How many sends to, or receives from, `peer` (a node rank) have begun.
  uint64_t* begun(int nodeRank, int peer, bool sends) const;

  // A new epoch of waits; the first kMostWaits are kept. Empty: it waits no more.
  void postWaits(int nodeRank, const std::vector<WaitEntry>& waits) const;
  void beat(int nodeRank) const;
  RankWaits waits(int nodeRank) const;

  // In one of kInvitations places, which take turns and are read all together: those that are there and do
  // not change.
  uint64_t newPlace(int nodeRank) const;
  void invite(int nodeRank, uint64_t place, const Invitation& invitation) const;
  std::vector<Invitation> invitations(int nodeRank) const;

  // Why a rank gives up: set before it poisons. Cut to kWordsBytes.
  void setLastWords(int nodeRank, std::string_view words) const;
  std::string lastWords(int nodeRank) const;

 private:
  struct Line;
  Line& line(int nodeRank) const;

  unsigned char* base_ = nullptr;
  int nodeRanks_ = 0;
};

}  // namespace topoccl
