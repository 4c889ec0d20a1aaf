#include "communicator/shrink.h"

#include <algorithm>
#include <array>

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

void setBit(std::array<char, 128>& bits, int index) {
  const auto byte = static_cast<size_t>(index) / 8;
  if (index >= 0 && byte < bits.size()) bits[byte] = static_cast<char>(bits[byte] | 1 << index % 8);
}

bool hasBit(const std::array<char, 128>& bits, int index) {
  const auto byte = static_cast<size_t>(index) / 8;
  return index >= 0 && byte < bits.size() && ((bits[byte] >> index % 8) & 1) != 0;
}

// The ranks that remain, as one of them sees them come.
class Gathering {
 public:
  Gathering(Member& parent, const std::vector<int>& remaining, uint64_t count, bool needsParent,
            const Wait& wait)
      : parent_(parent), remaining_(remaining), needsParent_(needsParent), wait_(wait) {
    mine_.meeting = {hashOf(remaining_), count};
    for (const int rank : remaining_) setBit(mine_.text, parent_.node().nodeRankOf(rank));
    place_ = board().newPlace(ownNodeRank());
  }

  // The id at which they all will meet. Where that fails the others are told why.
  UniqueId meet() {
    try {
      if (needsParent_) throwIfUnsound();
      catchUp();
      post(Invitation::Joins);
      return remaining_.front() == parent_.rank() ? invite() : await(remaining_.front());
    } catch (const DisagreementError& error) {
      giveUp(Invitation::Differs, error.what());
      throw;
    } catch (const Error& error) {
      giveUp(Invitation::Fails, error.what());
      throw;
    } catch (const std::exception&) {
      giveUp(Invitation::Fails, "out of memory");
      throw;
    }
  }

  const Meeting& meeting() const { return mine_.meeting; }

 private:
  struct DisagreementError : Error {
    explicit DisagreementError(const std::string& message) : Error(Code::InvalidUsage, message) {}
  };

  UniqueId invite() {
    while (!allHere()) pause();
    const UniqueId id = idWithRoot(parent_.settings());
    std::copy(id.bytes.begin(), id.bytes.end(), mine_.text.begin());
    post(Invitation::Invites);
    return id;
  }

  // First of all looks for the invitation: from there on a failure is the new communicator's.
  UniqueId await(int leader) {
    for (;; pause()) {
      const std::optional<Invitation> invitation = of(leader);
      if (invitation && invitation->kind == Invitation::Invites) {
        UniqueId id;
        std::copy(invitation->text.begin(), invitation->text.end(), id.bytes.begin());
        post(Invitation::Joined);
        return id;
      }
      allHere();
    }
  }

  void throwIfUnsound() const {
    try {
      parent_.throwIfUnusable();
    } catch (const Error& error) {
      throw Error(error.code(),
                  concat(error.what(), " (NCCL_SHRINK_ABORT makes a communicator of one that has failed)"));
    }
  }

  // ---- the board ----

  const Board& board() const { return parent_.memory()->board(); }
  int ownNodeRank() const { return parent_.node().nodeRankOf(parent_.rank()); }

  void post(Invitation::Kind kind) {
    mine_.kind = kind;
    board().invite(ownNodeRank(), place_, mine_);
  }

  void giveUp(Invitation::Kind kind, const char* why) {
    setText(mine_, why);
    post(kind);
  }

  template <class Fits>
  std::optional<Invitation> posted(int rank, const Fits& fits) const {
    for (const Invitation& invitation : board().invitations(parent_.node().nodeRankOf(rank)))
      if (fits(invitation)) return invitation;
    return std::nullopt;
  }

  std::optional<Invitation> of(int rank, const Meeting& meeting) const {
    return posted(rank, [&](const Invitation& one) { return one.meeting == meeting; });
  }

  // What `rank` posted of this gathering.
  std::optional<Invitation> of(int rank) const { return of(rank, mine_.meeting); }

  // What it posted of one of other ranks, in which it waits for this rank. Not of one that this rank took
  // part in: there the other will find that.
  std::optional<Invitation> ofAnother(int rank) const {
    return posted(rank, [&](const Invitation& one) {
      if (!one.waits() || one.meeting.members == mine_.meeting.members) return false;
      if (!hasBit(one.text, ownNodeRank())) return false;
      const std::optional<Invitation> answer = of(parent_.rank(), one.meeting);
      return !answer || answer->waits();
    });
  }

  // What it posted of a later gathering of the same ranks.
  std::optional<Invitation> later(int rank) const {
    std::optional<Invitation> latest;
    for (const Invitation& one : board().invitations(parent_.node().nodeRankOf(rank)))
      if (one.meeting.members == mine_.meeting.members &&
          one.meeting.count > (latest ? latest->meeting.count : mine_.meeting.count))
        latest = one;
    return latest;
  }

  // ---- the others ----

  // Another one tried before, without this rank, and tries again.
  void catchUp() {
    for (const int rank : remaining_)
      if (const std::optional<Invitation> theirs = later(rank); theirs && theirs->waits())
        skipTo(theirs->meeting.count);
  }

  void skipTo(uint64_t count) {
    mine_.meeting.count = count;
    parent_.skipShrinks(remaining_, count);
  }

  bool allHere() {
    missing_.clear();
    const bool looksForDead = looks_++ % kLooksPerDead == 0;
    for (const int rank : remaining_) {
      const std::optional<Invitation> theirs = of(rank);
      if (!theirs) {
        missing_.push_back(rank);
        throwIfDiffers(rank);
        followOn(rank);
      } else if (theirs->gaveUp()) {
        throwTheirs(rank, *theirs);
      }
      if (looksForDead && parent_.node().isGone(rank))
        throw Error(Code::RemoteError, concat("rank ", rank, " is gone; exclude it too"));
      // Once more: it may have come, and gone on, since.
      if (!theirs && parent_.node().hasLeft(rank) && !of(rank))
        throw Error(Code::RemoteError,
                    concat("rank ", rank, " has destroyed its communicator; exclude it too"));
    }
    return missing_.empty();
  }

  // One that is past this gathering came to it, and gave up, so often that nothing of it stands there any
  // more.
  void followOn(int rank) {
    const std::optional<Invitation> theirs = later(rank);
    if (!theirs || of(rank)) return;
    if (theirs->gaveUp()) throwTheirs(rank, *theirs);
    skipTo(theirs->meeting.count);
    post(Invitation::Joins);
  }

  void throwTheirs(int rank, const Invitation& theirs) const {
    const std::string text = concat("rank ", rank, " gave up on it: ", printable(textOf(theirs)));
    if (theirs.kind == Invitation::Differs) throw DisagreementError(text);
    throw Error(Code::RemoteError, text);
  }

  // Two that wait for each other, in gatherings of different ranks. Gives the other one time to see that too,
  // or to go on.
  void throwIfDiffers(int rank) {
    const std::optional<Invitation> theirs = ofAnother(rank);
    if (!theirs || of(rank)) return;
    post(Invitation::Objects);
    for (const Deadline end = Deadline::in(kTimeToSee); !end.passed(); sleepFor(kPause, wait_, "a shrink")) {
      const std::optional<Invitation> now = of(rank, theirs->meeting);
      if (now && (now->kind == Invitation::Objects || now->kind == Invitation::Differs)) break;
      if (!now || now->kind != Invitation::Joins) return post(Invitation::Joins);
    }
    throw DisagreementError(concat("ranks disagree: rank ", parent_.rank(), " excludes ",
                                   rankList(excluded(mine_)), "; rank ", rank, " excludes ",
                                   rankList(excluded(*theirs))));
  }

  // Of this node's ranks.
  std::vector<int> excluded(const Invitation& invitation) const {
    std::vector<int> ranks;
    for (const int rank : parent_.node().nodeRanks)
      if (!hasBit(invitation.text, parent_.node().nodeRankOf(rank))) ranks.push_back(rank);
    return ranks;
  }

  void pause() {
    if (parent_.ends()) throw Error(Code::InvalidUsage, "the communicator was aborted meanwhile");
    if (needsParent_)
      if (const std::optional<Error> error = parent_.asyncError()) throw Error(*error);
    const std::string what =
        concat("rank ", parent_.rank(), " making a communicator of the ranks that remain, waiting for ",
               rankList(missing_.empty() ? std::vector<int>{remaining_.front()} : missing_));
    if (wait_.deadline.passed())
      throw TimeoutError(
          concat(what, ": not within ", initTimeoutText(parent_.settings().initTimeout.count())));
    sleepFor(kPause, wait_, what);
  }

  static constexpr uint32_t kLooksPerDead = 50;  // a system call for each rank
  static constexpr std::chrono::milliseconds kTimeToSee{500};

  Member& parent_;
  const std::vector<int>& remaining_;
  Invitation mine_;
  uint64_t place_ = 0;
  bool needsParent_;
  Wait wait_;
  std::vector<int> missing_;
  uint32_t looks_ = 0;
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

SplitPart joinShrink(Member& parent, const std::vector<int>& remaining, uint64_t count, bool needsParent,
                     const Wait& wait) {
  Gathering gathering(parent, remaining, count, needsParent, wait);
  SplitPart mine;
  mine.id = gathering.meet();
  mine.meeting = gathering.meeting();
  mine.members = remaining;
  mine.rank =
      static_cast<int>(std::find(remaining.begin(), remaining.end(), parent.rank()) - remaining.begin());
  return mine;
}

}  // namespace topoccl
