#include "communicator/shrink.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/messages.h"
#include "bootstrap/rank_list.h"
#include "communicator/member.h"
#include "kernels/mix.h"

namespace topoccl {

namespace {

constexpr std::chrono::milliseconds kPause{1};  // before looking again

uint64_t hashOf(const std::vector<int>& ranks) {
  uint64_t hash = mix(ranks.size());
  for (const int rank : ranks) hash = mix(hash, static_cast<uint64_t>(rank));
  return hash;
}

// The ranks that remain, as one of them sees them come.
class Gathering {
 public:
  Gathering(Member& parent, const std::vector<int>& remaining, const ShrinkNumber& number, bool needsParent,
            const Wait& wait)
      : parent_(parent), remaining_(remaining), place_(number.place), needsParent_(needsParent), wait_(wait) {
    mine_.members = hashOf(remaining_);
    mine_.number = mix(mine_.members, number.count);
  }

  // The id at which they all will meet. Where that fails the others are told why.
  UniqueId meet() {
    try {
      for (const int rank : remaining_) setBit(mine_.text, parent_.node().nodeRankOf(rank));
      post(Invitation::Joins);
      const UniqueId id = remaining_.front() == parent_.rank() ? invite() : await(remaining_.front());
      return id;
    } catch (const Error& error) {
      mine_.text.fill('\0');
      std::copy_n(error.what(), std::min(std::strlen(error.what()), mine_.text.size() - 1),
                  mine_.text.begin());
      post(differs_ ? Invitation::Differs : Invitation::Fails);
      throw;
    }
  }

 private:
  UniqueId invite() {
    while (!allHere()) pause();
    const UniqueId id = idWithRoot(parent_.settings());
    std::copy(id.bytes.begin(), id.bytes.end(), mine_.text.begin());
    post(Invitation::Invites);
    return id;
  }

  UniqueId await(int leader) {
    for (;; pause()) {
      allHere();
      const std::optional<Invitation> invitation = of(leader);
      if (!invitation || invitation->kind != Invitation::Invites) continue;
      UniqueId id;
      std::copy(invitation->text.begin(), invitation->text.end(), id.bytes.begin());
      post(Invitation::Joined);
      return id;
    }
  }

  static void setBit(std::array<char, 128>& bits, int index) {
    char* const byte = byteOf(bits, index);
    if (byte != nullptr) *byte = static_cast<char>(*byte | 1 << index % 8);
  }
  static bool hasBit(std::array<char, 128> bits, int index) {
    const char* const byte = byteOf(bits, index);
    return byte != nullptr && ((*byte >> index % 8) & 1) != 0;
  }
  static char* byteOf(std::array<char, 128>& bits, int index) {
    const auto byte = static_cast<size_t>(index) / 8;
    return index >= 0 && byte < bits.size() ? &bits[byte] : nullptr;
  }

  const Board& board() const { return parent_.memory()->board(); }

  void post(Invitation::Kind kind) {
    mine_.kind = kind;
    board().invite(parent_.node().nodeRankOf(parent_.rank()), place_, mine_);
  }

  template <class Fits>
  std::optional<Invitation> posted(int rank, const Fits& fits) const {
    for (const Invitation& invitation : board().invitations(parent_.node().nodeRankOf(rank)))
      if (fits(invitation)) return invitation;
    return std::nullopt;
  }

  // What `rank` posted of this gathering.
  std::optional<Invitation> of(int rank) const {
    return posted(rank, [&](const Invitation& one) { return one.number == mine_.number; });
  }

  // What it posted of one of other ranks, in which it waits for this rank.
  std::optional<Invitation> ofAnother(int rank) const {
    const int own = parent_.node().nodeRankOf(parent_.rank());
    return posted(rank, [&](const Invitation& one) {
      const bool waits = one.kind == Invitation::Joins || one.kind == Invitation::Objects;
      return waits && one.members != mine_.members && hasBit(one.text, own);
    });
  }

  // Two that wait for each other, in gatherings of different ranks. Gives the other one time to see that too.
  void throwIfDiffers(int rank) {
    if (!ofAnother(rank)) return;
    differs_ = true;
    post(Invitation::Objects);
    for (const Deadline end = Deadline::in(kTimeToSee); !end.passed(); sleepFor(kPause, wait_, "a shrink")) {
      const std::optional<Invitation> other = ofAnother(rank);
      if (!other || other->kind == Invitation::Objects) break;
    }
    throw Error(Code::InvalidUsage, concat("ranks disagree: rank ", parent_.rank(), " and rank ", rank,
                                           " exclude different ranks"));
  }

  void throwTheirs(int rank, const Invitation& theirs) {
    differs_ = theirs.kind == Invitation::Differs;
    const std::string why =
        printable({theirs.text.data(), ::strnlen(theirs.text.data(), theirs.text.size())});
    throw Error(differs_ ? Code::InvalidUsage : Code::RemoteError,
                concat("rank ", rank, " gave up on it: ", why));
  }

  bool allHere() {
    missing_.clear();
    const bool looksForDead = looks_++ % kLooksPerDead == 0;
    for (const int rank : remaining_) {
      const std::optional<Invitation> theirs = of(rank);
      if (!theirs) throwIfDiffers(rank);
      if (!theirs) missing_.push_back(rank);
      if (theirs && theirs->kind >= Invitation::Differs) throwTheirs(rank, *theirs);
      if (looksForDead && parent_.node().isGone(rank))
        throw Error(Code::RemoteError, concat("rank ", rank, " is gone; exclude it too"));
      // Once more: it may have come, and gone on, since.
      if (!theirs && parent_.node().hasLeft(rank) && !of(rank))
        throw Error(Code::RemoteError,
                    concat("rank ", rank, " has destroyed its communicator; exclude it too"));
    }
    return missing_.empty();
  }

  void pause() {
    if (parent_.ends()) throw Error(Code::InvalidUsage, "the communicator was aborted meanwhile");
    if (needsParent_ && parent_.asyncError() != Code::Success) parent_.throwIfFailed();
    const std::string what =
        concat("rank ", parent_.rank(), " making a communicator of the ranks that remain, waiting for ",
               rankList(missing_.empty() ? std::vector<int>{remaining_.front()} : missing_));
    throwIfOver(wait_, what);
    sleepFor(kPause, wait_, what);
  }

  static constexpr uint32_t kLooksPerDead = 50;  // a system call for each rank
  static constexpr std::chrono::milliseconds kTimeToSee{500};

  Member& parent_;
  const std::vector<int>& remaining_;
  Invitation mine_;
  uint64_t place_;
  bool needsParent_;
  Wait wait_;
  std::vector<int> missing_;
  uint32_t looks_ = 0;
  bool differs_ = false;
};

}  // namespace

std::vector<int> remainingRanks(int ranks, int self, const std::vector<int>& excluded) {
  std::vector<bool> remains(static_cast<size_t>(ranks), true);
  for (const int rank : excluded) {
    if (rank < 0 || rank >= ranks)
      throw Error(Code::InvalidArgument,
                  concat("excludeRanksList has ", rank, "; it must have ranks in 0..", ranks - 1));
    if (rank == self)
      throw Error(Code::InvalidArgument,
                  concat("excludeRanksList has ", rank,
                         ", the calling rank; a rank that is excluded doesn't call this"));
    remains[static_cast<size_t>(rank)] = false;
  }
  std::vector<int> remaining;
  for (int rank = 0; rank < ranks; ++rank)
    if (remains[static_cast<size_t>(rank)]) remaining.push_back(rank);
  return remaining;
}

SplitPart joinShrink(Member& parent, const std::vector<int>& remaining, const ShrinkNumber& number,
                     bool needsParent, const Wait& wait) {
  SplitPart mine;
  mine.id = Gathering(parent, remaining, number, needsParent, wait).meet();
  mine.members = remaining;
  mine.rank =
      static_cast<int>(std::find(remaining.begin(), remaining.end(), parent.rank()) - remaining.begin());
  return mine;
}

}  // namespace topoccl
