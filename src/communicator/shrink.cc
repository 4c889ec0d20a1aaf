#include "communicator/shrink.h"

#include <algorithm>
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
  Gathering(Member& parent, const std::vector<int>& remaining, uint64_t number, bool needsParent,
            const Wait& wait)
      : parent_(parent), remaining_(remaining), number_(number), needsParent_(needsParent), wait_(wait) {}

  UniqueId meet() {
    Invitation mine{number_, hashOf(remaining_), Invitation::Joins, {}};
    invite(mine);
    const int leader = remaining_.front();
    if (leader == parent_.rank()) {
      while (!allHere()) pause();
      mine.kind = Invitation::Invites;
      const UniqueId id = makeId(mine);
      invite(mine);
      return id;
    }
    for (;;) {
      const bool here = allHere();
      const std::optional<Invitation> invitation = of(leader);
      if (invitation && invitation->kind == Invitation::Invites) return idIn(*invitation);
      if (invitation && invitation->kind == Invitation::Fails)
        throw Error(Code::RemoteError,
                    concat("rank ", leader, " made no id for the remaining ranks: ",
                           printable({invitation->text.data(), ::strnlen(invitation->text.data(), 128)})));
      if (here) throwIfGone(leader);
      pause();
    }
  }

 private:
  static UniqueId idIn(const Invitation& invitation) {
    UniqueId id;
    std::copy(invitation.text.begin(), invitation.text.end(), id.bytes.begin());
    return id;
  }

  // A root of its own, also where the parent met at NCCL_COMM_ID.
  UniqueId makeId(Invitation& mine) {
    Settings settings = parent_.settings();
    settings.commId.clear();
    try {
      const UniqueId id = getUniqueId(settings);
      std::copy(id.bytes.begin(), id.bytes.end(), mine.text.begin());
      return id;
    } catch (const Error& error) {
      mine.kind = Invitation::Fails;
      std::copy_n(error.what(), std::min(std::strlen(error.what()), mine.text.size() - 1), mine.text.begin());
      invite(mine);
      throw;
    }
  }

  void invite(const Invitation& mine) const {
    parent_.memory()->board().invite(parent_.nodeRankOf(parent_.rank()), mine);
  }
  std::optional<Invitation> of(int rank) const {
    return parent_.memory()->board().invitation(parent_.nodeRankOf(rank), number_);
  }

  bool allHere() {
    missing_.clear();
    for (const int rank : remaining_) {
      const std::optional<Invitation> theirs = of(rank);
      if (!theirs) {
        throwIfGone(rank);
        missing_.push_back(rank);
      } else if (theirs->members != hashOf(remaining_)) {
        throw Error(Code::InvalidUsage, concat("ranks disagree: rank ", parent_.rank(), " and rank ", rank,
                                               " exclude different ranks"));
      }
    }
    return missing_.empty();
  }

  void throwIfGone(int rank) {
    if (parent_.watch().isGone(rank) || parent_.watch().hasLeft(rank))
      throw Error(Code::RemoteError, concat("rank ", rank, " is gone; exclude it too"));
  }

  void pause() {
    if (needsParent_ && parent_.asyncError() != Code::Success) parent_.throwIfFailed();
    const std::string what =
        concat("rank ", parent_.rank(), " making a communicator of the ranks that remain, waiting for ",
               rankList(missing_.empty() ? std::vector<int>{remaining_.front()} : missing_));
    throwIfOver(wait_, what);
    sleepFor(kPause, wait_, what);
  }

  Member& parent_;
  const std::vector<int>& remaining_;
  uint64_t number_;
  bool needsParent_;
  Wait wait_;
  std::vector<int> missing_;
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

SplitPart joinShrink(Member& parent, const std::vector<int>& remaining, uint64_t number, bool needsParent,
                     const Wait& wait) {
  SplitPart mine;
  mine.id = Gathering(parent, remaining, number, needsParent, wait).meet();
  mine.ranks = static_cast<int>(remaining.size());
  mine.rank =
      static_cast<int>(std::find(remaining.begin(), remaining.end(), parent.rank()) - remaining.begin());
  return mine;
}

}  // namespace topoccl
