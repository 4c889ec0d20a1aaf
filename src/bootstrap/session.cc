#include "bootstrap/session.h"

#include <algorithm>
#include <utility>

#include "base/version.h"
#include "bootstrap/rank_list.h"

namespace topoccl {
namespace {

// For so long the root's process is kept for those who have not come yet.
constexpr std::chrono::seconds kHold{1};

std::string place(const Join& join) {
  return concat("host ", join.host, ", process ", join.processId);
}

std::string versionText(uint32_t version) {
  return concat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

std::string strangersText(uint64_t strangers) {
  if (strangers == 0) return "";
  return concat(
      "; ", strangers, strangers == 1 ? " connection" : " connections",
      " that did not hold the id's secret were turned away: another id, or another TOPOCCL_SECRET?");
}

}  // namespace

Session::Session(Welcome self, std::chrono::milliseconds linger, Send send)
    : self_(std::move(self)), linger_(linger), send_(std::move(send)) {}

void Session::onFrame(int connection, uint32_t claimedRank, const Frame& frame, Time now) {
  const auto known = rankOf_.find(connection);
  if (known == rankOf_.end()) {
    const std::optional<Join> join = decodeJoin(frame.payload);
    if (frame.kind == static_cast<uint8_t>(Message::Join) && join)
      onJoin(connection, claimedRank, *join, now);
    return settle();
  }
  Member& member = members_.at(known->second);
  switch (static_cast<Message>(frame.kind)) {
    case Message::Gather: {
      std::optional<Contribution> contribution = decodeContribution(frame.payload);
      if (contribution)
        onGather(member, std::move(*contribution), now);
      else
        fail({Code::RemoteError, known->second, concat("rank ", known->second, " sent a malformed message")});
      break;
    }
    case Message::Abort:
      fail({Code::RemoteError, known->second,
            concat("rank ", known->second, " (", place(member.join),
                   ") aborted: ", printable(frame.payload))});
      break;
    case Message::Leave:
      onLeave(member);
      break;
    default:
      fail({Code::RemoteError, known->second,
            concat("rank ", known->second, " sent an unknown message (", int{frame.kind}, ")")});
  }
  settle();
}

std::optional<Failure> Session::objection(const Join& join) const {
  const auto invalid = [&](const std::string& reason) {
    return Failure{Code::InvalidUsage, join.rank, reason};
  };
  if (join.version != version_)
    return invalid(concat("rank ", join.rank, " (", place(join), ") runs version ", versionText(join.version),
                          " of the library, the ranks before it version ", versionText(version_)));
  if (join.ranks != ranks_)
    return invalid(concat("rank ", join.rank, " (", place(join), ") was started as one of ", join.ranks,
                          " ranks, but the ranks that came before it as one of ", ranks_));
  if (join.ranks < 1 || join.rank < 0 || join.rank >= join.ranks)
    return invalid(concat("rank ", join.rank, " (", place(join), ") is out of range: there are ", join.ranks,
                          " ranks, numbered from 0"));
  const auto other = members_.find(join.rank);
  if (other != members_.end())
    return invalid(concat("rank ", join.rank, " came twice: from ", place(other->second.join), " and from ",
                          place(join), complete_ ? "; the id was used before: make a new one" : ""));
  return std::nullopt;
}

void Session::onJoin(int connection, uint32_t claimedRank, const Join& join, Time now) {
  if (claimedRank != static_cast<uint32_t>(join.rank)) return;
  if (failure_) return tellOfFailure(connection, join.rank, join.process);
  if (ranks_ == 0) {
    ranks_ = join.ranks;
    version_ = join.version;
  }
  if (const std::optional<Failure> failure = objection(join)) {
    // A complete communicator is not harmed by somebody who uses its id again.
    if (complete_) return send_(connection, Message::Failure, Payload(encode(*failure)));
    fail(*failure);
    return tellOfFailure(connection, join.rank, join.process);
  }
  Member& member = members_[join.rank];
  member.connection = connection;
  member.join = join;
  rankOf_[connection] = join.rank;
  ++connected_;
  if (join.process == self_.process) {
    self_.rootRank = ++atRoot_ == 1 ? join.rank : kSeveralRanks;
  }
  waitAtMost(join.patienceMilliseconds, now);
  if (members_.size() == static_cast<size_t>(ranks_)) welcome();
}

void Session::welcome() {
  complete_ = true;
  patience_ = Deadline::never();
  const Payload payload(encode(self_));
  for (const auto& [rank, member] : members_) send_(member.connection, Message::Welcome, payload);
}

void Session::onGather(Member& member, Contribution contribution, Time now) {
  if (failure_) return;
  const int rank = member.join.rank;
  const Failure broken{Code::InternalError, rank, concat("rank ", rank, " broke the protocol of allGather")};
  if (!complete_ || member.blob || member.left) return fail(broken);
  bytes_ += contribution.blob.size();
  if (bytes_ > kMaxGatherBytes)
    return fail({Code::InvalidUsage, rank,
                 concat("contributions to an allGather exceed ", kMaxGatherBytes, " bytes with rank ", rank,
                        "'s ", contribution.blob.size())});
  member.blob = std::move(contribution.blob);
  ++blobs_;
  waitAtMost(contribution.patienceMilliseconds, now);
  if (blobs_ == members_.size()) return finishRound();
  for (const auto& [other, state] : members_)
    if (state.left)
      return fail({Code::RemoteError, other, concat("rank ", other, " has left and takes part no more")});
}

void Session::finishRound() {
  std::vector<std::string> blobs;
  blobs.reserve(members_.size());
  for (auto& [rank, member] : members_) {
    blobs.push_back(std::move(*member.blob));
    member.blob.reset();
  }
  blobs_ = bytes_ = 0;
  patience_ = Deadline::never();
  const Payload payload(encodeBlobs(blobs));
  for (const auto& [rank, member] : members_) send_(member.connection, Message::Gathered, payload);
}

void Session::onLeave(Member& member) {
  if (member.left) return;
  member.left = true;
  std::erase(held_, member.connection);
  const int rank = member.join.rank;
  const Payload nothing("");
  if (!complete_) fail({Code::RemoteError, rank, concat("rank ", rank, " gave up during init")});
  if (blobs_ > 0)
    fail({Code::RemoteError, rank, concat("rank ", rank, " left while others wait for it in an allGather")});
  // The root's process may end once its last rank has left, however busy the others still are. Its rank waits
  // for the farewell, so that they have been told by then.
  if (member.join.process == self_.process && --atRoot_ == 0)
    for (const auto& [other, state] : members_)
      if (state.connected && !state.left) send_(state.connection, Message::RootMayGo, nothing);
  send_(member.connection, Message::Farewell, nothing);
}

void Session::onClosed(int connection, const std::string& why) {
  std::erase(held_, connection);
  const auto known = rankOf_.find(connection);
  if (known == rankOf_.end()) return;
  const int rank = known->second;
  Member& member = members_.at(rank);
  rankOf_.erase(known);
  member.connected = false;
  --connected_;
  if (!member.left)
    fail({Code::RemoteError, rank,
          concat("rank ", rank, " (", place(member.join), ") is gone without a goodbye",
                 complete_ ? "" : " during init", ": ", why)});
  settle();
}

void Session::waitAtMost(uint32_t milliseconds, Time now) {
  const Deadline deadline = Deadline::at(now + std::chrono::milliseconds(milliseconds));
  if (deadline >= patience_) return;
  patience_ = deadline;
  patienceMilliseconds_ = milliseconds;
}

std::vector<int> Session::absent(bool fromRound) const {
  std::vector<int> missing;
  auto next = members_.begin();
  // Gaps between members, without a loop over every rank that anybody might have claimed to exist.
  for (int rank = 0; rank < ranks_ && missing.size() < 100'000; ++rank) {
    const bool joined = next != members_.end() && next->first == rank;
    if (!joined || (fromRound && !next->second.blob)) missing.push_back(rank);
    if (joined) ++next;
  }
  return missing;
}

void Session::onTick(Time now) {
  if (!failure_ && patience_ <= Deadline::at(now)) {
    const std::vector<int> missing = absent(complete_);
    fail({Code::RemoteError, missing.empty() ? -1 : missing.front(),
          concat(rankList(missing), " of ", ranks_, complete_ ? " did not come" : " did not join", " within ",
                 initTimeoutText(patienceMilliseconds_),
                 complete_ ? "" : obstacle_ + strangersText(strangers_))});
  }
  if (failure_ && end_ == Deadline::never()) {
    end_ = Deadline::at(now + linger_);
    holdUntil_ = Deadline::at(now + std::min<std::chrono::milliseconds>(kHold, linger_));
  }
  if (holdUntil_ <= Deadline::at(now)) tellHeld();
  if (end_ <= Deadline::at(now) && connected_ == 0) finished_ = true;
  settle();
}

Deadline Session::nextTick() const {
  if (!failure_) return patience_;
  // Straight away to start the time of lingering; then at its end.
  if (end_ == Deadline::never()) return Deadline::at(Time{});
  return std::min(held_.empty() ? Deadline::never() : holdUntil_, connected_ == 0 ? end_ : Deadline::never());
}

void Session::fail(Failure failure) {
  if (failure_) return;
  failure_ = std::move(failure);
  patience_ = Deadline::never();
  for (const auto& [rank, member] : members_) {
    told_.insert(rank);
    if (member.connected && !member.left) tellOfFailure(member.connection, rank, member.join.process);
  }
  // From there on those who are late are known, and none of them comes.
  if (complete_) tellHeld();
}

void Session::tellOfFailure(int connection, int rank, uint64_t process) {
  if (rank >= 0 && rank < ranks_) told_.insert(rank);
  if (process == self_.process)
    held_.push_back(connection);
  else
    send_(connection, Message::Failure, Payload(encode(*failure_)));
  if (told_.size() >= static_cast<size_t>(ranks_)) tellHeld();
}

void Session::tellHeld() {
  const Payload payload(encode(*failure_));
  for (const int connection : std::exchange(held_, {})) send_(connection, Message::Failure, payload);
}

void Session::settle() {
  if (connected_ > 0 || ranks_ == 0) return;
  if (complete_ || (failure_ && told_.size() >= static_cast<size_t>(ranks_))) finished_ = true;
}

}  // namespace topoccl
