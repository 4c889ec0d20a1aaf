#include "communicator/node_watch.h"

#include <algorithm>
#include <utility>

#include "base/logging.h"
#include "bootstrap/rank_list.h"
#include "communicator/describe_call.h"
#include "kernels/mix.h"
#include "kernels/sync.h"

namespace topoccl {

namespace {

// Chosen: longer than what busy machines usually keep a thread from running, short beside the 10 s within
// which a disagreement is to be told.
constexpr std::chrono::milliseconds kStandstill{500};
constexpr std::chrono::milliseconds kSearchEvery{50};
// A beat tells of the look before it. So of these three the first may tell of one that ended, and the second
// of one that began, before the circle was seen.
constexpr uint64_t kBeatsToConfirm = 3;

}  // namespace

NodeWatch::NodeWatch(const NodeSetUp& node, int rank, std::chrono::milliseconds reportAfter)
    : node_(node), nodeRank_(node_.nodeRankOf(rank)), reportAfter_(reportAfter) {
  round_.reserve(Board::kMostWaits);  // the usual calls then need no memory to wait
}

void NodeWatch::begin(const CallDescriptor& call) {
  if (!call.isPeerCall()) return board().post(nodeRank_, call);
  const int peer = node_.nodeRankOf(call.root);
  if (peer < 0) return;
  storeRelease(board().begun(nodeRank_, peer, call.collective == CallDescriptor::kSend), call.number);
}

// ---- calls that don't match ----

std::optional<Error> NodeWatch::disagreement() const {
  const uint64_t mine = board().lastPosted(nodeRank_).number;
  for (int peer = 0; peer < board().nodeRanks(); ++peer) {
    const uint64_t common = std::min(mine, board().lastPosted(peer).number);
    if (peer == nodeRank_ || common == 0) continue;
    if (std::optional<Error> found = disagreementWith(peer, common)) return found;
  }
  return std::nullopt;
}

// `number`: the last collective that both have begun.
std::optional<Error> NodeWatch::disagreementWith(int nodeRank, uint64_t number) const {
  std::optional<std::pair<CallDescriptor, CallDescriptor>> first;
  for (; number != 0; --number) {
    const std::optional<CallDescriptor> mine = board().posted(nodeRank_, number);
    const std::optional<CallDescriptor> theirs = board().posted(nodeRank, number);
    if (!mine || !theirs || mine->history == theirs->history) break;
    first = {*mine, *theirs};
  }
  if (!first) return std::nullopt;
  auto [mine, theirs] = *first;
  theirs.history = mine.history;
  const std::string where = mine == theirs ? " after calls before that differed" : "";
  return Error(Code::InvalidUsage,
               concat("ranks disagree: rank ", rankOf(nodeRank_), " called ", describe(mine), "; rank ",
                      rankOf(nodeRank), " called ", describe(theirs), where));
}

std::optional<Error> NodeWatch::leftBefore(const CallDescriptor& call) const {
  for (int peer = 0; peer < board().nodeRanks(); ++peer) {
    // In this order: it says goodbye after its last call.
    if (!node_.hasLeft(rankOf(peer)) || board().lastPosted(peer).number >= call.number) continue;
    return Error(Code::RemoteError, concat("rank ", rankOf(nodeRank_), ": rank ", rankOf(peer),
                                           " destroyed its communicator before ", describe(call)));
  }
  return std::nullopt;
}

// ---- rounds ----

std::optional<Error> NodeWatch::look(const WaitEntry& entry, uint64_t progress) {
  const auto sameCall = [&](const WaitEntry& other) { return other.call == entry.call; };
  std::optional<Error> found;
  if (std::any_of(round_.begin(), round_.end(), sameCall)) found = endRound();
  round_.push_back(entry);
  for (const uint64_t value :
       {entry.call.number, uint64_t{entry.call.collective}, static_cast<uint64_t>(entry.call.root), progress,
        static_cast<uint64_t>(entry.peer), static_cast<uint64_t>(entry.what), uint64_t{entry.lane},
        uint64_t{entry.step}, entry.piece})
    signature_ = mix(signature_ ^ value);
  return found;
}

void NodeWatch::moved() {
  if (posted_) board().postWaits(nodeRank_, {});
  posted_ = reported_ = false;
  suspects_.clear();
  round_.clear();
  signature_ = lastSignature_ = 0;
}

std::optional<Error> NodeWatch::endRound() {
  const Clock::time_point now = Clock::now();
  const uint64_t signature = std::exchange(signature_, 0);
  if (signature != lastSignature_) {
    moved();
    lastSignature_ = signature;
    since_ = now;
    return std::nullopt;
  }
  const Clock::duration standing = now - since_;
  if (standing >= kStandstill && !std::exchange(posted_, true)) board().postWaits(nodeRank_, round_);
  round_.clear();
  if (!posted_ || now < nextSearch_) return std::nullopt;
  nextSearch_ = now + kSearchEvery;
  board().beat(nodeRank_);
  if (reportAfter_.count() > 0 && standing >= reportAfter_ && !std::exchange(reported_, true))
    report(standing);
  return deadlock();
}

NodeWatch::AllWaits NodeWatch::allWaits() const {
  AllWaits all;
  for (int nodeRank = 0; nodeRank < board().nodeRanks(); ++nodeRank) all.push_back(board().waits(nodeRank));
  return all;
}

// ---- circles ----

// A circle of waits is a deadlock if all of them stand at one moment. Each rank in it looks at its calls
// again and again: who has done so since the circle was seen, and still waits as it did, waited all the
// while.
std::optional<Error> NodeWatch::deadlock() {
  if (!suspects_.empty()) {
    if (confirmed()) return verdict_;
    return std::nullopt;
  }
  const AllWaits all = allWaits();
  const std::vector<Spot> places = circle(all);
  if (places.empty()) return std::nullopt;
  std::string text = "ranks wait for each other:";
  for (const Spot& place : places) {
    const RankWaits& waits = all[static_cast<size_t>(place.nodeRank)];
    const WaitEntry& entry = waits.entries[place.entry];
    suspects_.push_back({place.nodeRank, waits.epoch, waits.beats});
    text += concat(suspects_.size() == 1 ? " rank " : "; rank ", rankOf(place.nodeRank), " in ",
                   describe(entry.call), " waits for rank ", entry.peer);
  }
  verdict_.emplace(Code::InvalidUsage, text);
  return std::nullopt;
}

bool NodeWatch::confirmed() {
  bool all = true;
  for (const Suspect& suspect : suspects_) {
    const RankWaits waits = board().waits(suspect.nodeRank);
    if (waits.epoch != suspect.epoch) {
      suspects_.clear();
      return false;
    }
    all = all && waits.beats >= suspect.beats + kBeatsToConfirm;
  }
  return all;
}

// A circle through one of this rank's waits for a call that another rank has not begun; empty if there is
// none. Within calls that all have begun there are no deadlocks (schedules are checked), and a wait there is
// only one of those that a call's lanes have.
std::vector<NodeWatch::Spot> NodeWatch::circle(const AllWaits& all) const {
  for (size_t i = 0; i < all[static_cast<size_t>(nodeRank_)].entries.size(); ++i) {
    const Spot own{nodeRank_, i};
    const Awaiting awaiting = awaitedBy(all, own);
    if (awaiting.begun) continue;
    for (const Spot& next : awaiting.spots) {
      std::vector<Spot> way = wayTo(all, next, own);
      if (!way.empty()) return way;
    }
  }
  return {};
}

// From a wait to another, over what each can't end before; empty if there is no way.
std::vector<NodeWatch::Spot> NodeWatch::wayTo(const AllWaits& all, const Spot& from, const Spot& to) const {
  std::vector<Spot> found{from};
  std::vector<size_t> before{0};  // of each: which of them led there
  const auto same = [](const Spot& a, const Spot& b) {
    return a.nodeRank == b.nodeRank && a.entry == b.entry;
  };
  for (size_t at = 0; at < found.size(); ++at) {
    if (same(found[at], to)) {
      std::vector<Spot> way{found[at]};
      for (; at != 0; at = before[at]) way.push_back(found[before[at]]);
      return {way.rbegin(), way.rend()};
    }
    for (const Spot& next : awaitedBy(all, found[at]).spots) {
      if (std::any_of(found.begin(), found.end(), [&](const Spot& it) { return same(it, next); })) continue;
      found.push_back(next);
      before.push_back(at);
    }
  }
  return {};
}

// What a wait can't end before. The other end of the same call, where that has begun and waits. Where it has
// not begun, nothing of it happens before all that the peer does now is done: any of its waits.
NodeWatch::Awaiting NodeWatch::awaitedBy(const AllWaits& all, const Spot& place) const {
  const WaitEntry& entry = all[static_cast<size_t>(place.nodeRank)].entries[place.entry];
  const int peer = node_.nodeRankOf(entry.peer);
  Awaiting awaiting;
  if (peer < 0) return awaiting;
  const std::vector<WaitEntry>& theirs = all[static_cast<size_t>(peer)].entries;
  const bool peerCall = entry.call.isPeerCall();
  for (size_t i = 0; i < theirs.size(); ++i) {
    const CallDescriptor& call = theirs[i].call;
    const bool otherEnd = peerCall ? call.isPeerCall() && call.collective != entry.call.collective &&
                                         call.root == rankOf(place.nodeRank)
                                   : !call.isPeerCall();
    // One before it in the same line counts too: it comes first.
    if (otherEnd && call.number <= entry.call.number) return {{{peer, i}}, call.number == entry.call.number};
  }
  if (!notBegun(peer, place.nodeRank, entry.call)) return awaiting;
  awaiting.begun = false;
  for (size_t i = 0; i < theirs.size(); ++i) awaiting.spots.push_back({peer, i});
  return awaiting;
}

// Whether `nodeRank` has not begun its part of `byNodeRank`'s call.
bool NodeWatch::notBegun(int nodeRank, int byNodeRank, const CallDescriptor& call) const {
  if (!call.isPeerCall()) return board().lastPosted(nodeRank).number < call.number;
  const bool sends = call.collective == CallDescriptor::kReceive;
  return loadAcquire(board().begun(nodeRank, byNodeRank, sends)) < call.number;
}

// ---- the report ----

void NodeWatch::report(Clock::duration standing) {
  const AllWaits all = allWaits();
  const std::vector<WaitEntry>& mine = all[static_cast<size_t>(nodeRank_)].entries;
  if (mine.empty()) return;
  uint64_t standstill = 1;
  CallDescriptor latest;  // the farthest collective that anybody waits in
  for (const RankWaits& waits : all) {
    standstill = mix(standstill, waits.epoch);
    for (const WaitEntry& entry : waits.entries)
      if (!entry.call.isPeerCall() && entry.call.number > latest.number) latest = entry.call;
  }
  const uint64_t before = loadAcquire(board().reported());
  if (before == standstill || !compareExchange(board().reported(), before, standstill)) return;
  std::string text =
      concat("rank ", rankOf(nodeRank_), ": ", describe(mine.front().call), " has stood still for ",
             secondsText(std::chrono::duration_cast<std::chrono::milliseconds>(standing).count()),
             " (TOPOCCL_REPORT_AFTER); what the ranks of this node wait for:");
  for (int nodeRank = 0; nodeRank < board().nodeRanks(); ++nodeRank)
    text += standingOf(nodeRank, all[static_cast<size_t>(nodeRank)], latest);
  // Also where NCCL_DEBUG is not set: nothing else is going to be said.
  processLogger().writeUnasked(Level::Warn, text);
}

// What a rank does; `latest`: the collective at which it should have arrived, number 0 if there is none.
std::string NodeWatch::standingOf(int nodeRank, const RankWaits& waits, const CallDescriptor& latest) const {
  const CallDescriptor last = board().lastPosted(nodeRank);
  std::string text = concat("\n  rank ", rankOf(nodeRank), " (process ",
                            loadAcquire(&board().touch(nodeRank).process), "): ");
  if (node_.hasLeft(rankOf(nodeRank))) return text + "has destroyed its communicator";
  if (last.number < latest.number)
    text += concat("has not arrived at ", describe(latest), ", its last collective was ",
                   last.number == 0 ? "none" : describe(last), "; ");
  if (waits.entries.empty()) return text + "waits in no call";
  for (size_t i = 0; i < waits.entries.size(); ++i)
    text += concat(i == 0 ? "" : "; ", describe(waits.entries[i].call), ": ", describeWait(waits.entries[i]));
  return text;
}

}  // namespace topoccl
