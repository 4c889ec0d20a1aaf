#include "communicator/part_watch.h"

#include <utility>

#include "base/error.h"
#include "bootstrap/messages.h"

namespace topoccl {

namespace {

constexpr std::chrono::milliseconds kLookEvery{100};  // a system call for each rank

}  // namespace

PartWatch::PartWatch(NodeSetUp node, int rank, SplitPart part)
    : node_(std::move(node)), rank_(rank), part_(std::move(part)) {}

void PartWatch::check() {
  if (!next_.passed()) return;
  next_ = Deadline::in(kLookEvery);
  checkNow();
}

void PartWatch::checkNow() const {
  const auto fail = [this](int rank, const std::string& why) {
    throw Error(Code::RemoteError, concat("rank ", rank_, " joining a new communicator: rank ", rank,
                                          " of the one it is made of ", why));
  };
  for (const int rank : part_.members) {
    if (rank == rank_ || node_.nodeRankOf(rank) < 0) continue;
    for (const Invitation& theirs : node_.memory->board().invitations(node_.nodeRankOf(rank)))
      if (theirs.meeting == part_.meeting && theirs.gaveUp())
        fail(rank, "gave up: " + printable(textOf(theirs)));
    if (node_.isGone(rank)) fail(rank, concat("failed: ", kGoneText));
  }
}

void PartWatch::giveUp(const char* why) const {
  const Board& board = node_.memory->board();
  const int own = node_.nodeRankOf(rank_);
  Invitation invitation{part_.meeting, Invitation::Fails, {}};
  setText(invitation, why);
  board.invite(own, board.newPlace(own), invitation);
}

}  // namespace topoccl
