#include "communicator/node_set_up.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "base/error.h"
#include "bootstrap/local_exchange.h"
#include "bootstrap/messages.h"
#include "communicator/process.h"
#include "communicator/rank_introduction.h"
#include "kernels/sync.h"

namespace topoccl {

namespace {

// The first line that differs, from both texts: "NAME=value", or "NAME unset".
std::string firstDifference(const std::string& a, const std::string& b, int rankA, int rankB) {
  size_t begin = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()) && a[i] == b[i]; ++i)
    if (a[i] == '\n') begin = i + 1;
  const auto line = [&](const std::string& text) {
    std::string found = printable(text.substr(std::min(begin, text.size()), text.find('\n', begin) - begin));
    if (found.ends_with('=')) found.replace(found.size() - 1, 1, " unset");
    return found;
  };
  return concat("rank ", rankA, " has ", line(a), ", rank ", rankB, " has ", line(b));
}

void checkAgreement(const std::vector<RankIntroduction>& ranks) {
  for (size_t i = 1; i < ranks.size(); ++i) {
    const int rank = static_cast<int>(i);
    if (ranks[i].settings != ranks[0].settings)
      throw Error(Code::InvalidUsage, concat("settings that must be equal on all ranks differ: ",
                                             firstDifference(ranks[0].settings, ranks[i].settings, 0, rank)));
    if (ranks[i].facts.tableHash != ranks[0].facts.tableHash)
      throw Error(Code::InvalidUsage,
                  concat("ranks 0 and ", rank, " have different range tables (TOPOCCL_RANGE_TABLE)"));
    if (ranks[i].facts.host != ranks[0].facts.host)
      throw Error(Code::InvalidUsage,
                  concat("ranks 0 and ", rank,
                         " are on different hosts or in containers that share no memory; this version has no "
                         "network transport, all ranks must be on one host (NCCL_HOSTID may have split it)"));
  }
}

int countCores(const std::vector<RankIntroduction>& ranks, const std::vector<int>& nodeRanks) {
  std::vector<uint64_t> all;
  for (const int rank : nodeRanks) {
    const auto& cores = ranks[static_cast<size_t>(rank)].cores;
    if (cores.empty()) return 0;
    if (all.size() < cores.size()) all.resize(cores.size());
    for (size_t i = 0; i < cores.size(); ++i) all[i] |= cores[i];
  }
  int count = 0;
  for (const uint64_t word : all) count += std::popcount(word);
  return count;
}

// Who lives where, seen from `rank`.
struct Neighbours {
  NodeShare share;
  int firstOfProcess = -1;  // lowest rank of this rank's process
  int processRanks = 0;     // ranks of this rank's process
};

Neighbours findNeighbours(const std::vector<RankIntroduction>& ranks, int rank, NodeSetUp& node) {
  const RankFacts& me = ranks[static_cast<size_t>(rank)].facts;
  Neighbours found;
  std::set<uint64_t> processes;
  for (int peer = 0; peer < static_cast<int>(ranks.size()); ++peer) {
    const RankFacts& facts = ranks[static_cast<size_t>(peer)].facts;
    node.places.emplace_back();
    if (facts.host != me.host) continue;
    node.places.back() = {static_cast<int>(node.nodeRanks.size()), facts.process == me.process};
    node.nodeRanks.push_back(peer);
    if (processes.insert(facts.process).second && processes.size() > 1) found.share.receivers.push_back(peer);
    if (facts.process != me.process) continue;
    if (found.processRanks++ == 0) found.firstOfProcess = peer;
  }
  found.share.leader = node.nodeRanks.front();
  return found;
}

}  // namespace

int NodeSetUp::nodeRankOf(int rank) const {
  if (rank < 0 || static_cast<size_t>(rank) >= places.size()) return -1;
  return places[static_cast<size_t>(rank)].nodeRank;
}

bool NodeSetUp::hasLeft(int rank) const {
  const int nodeRank = nodeRankOf(rank);
  return nodeRank >= 0 && loadAcquire(&memory->board().touch(nodeRank).left) != 0;
}

bool NodeSetUp::isGone(int rank) const {
  const RankPlace& place = places[static_cast<size_t>(rank)];
  return place.nodeRank >= 0 && !place.sameProcess && !memory->present(place.nodeRank) &&
         !hasLeft(rank);  // it says goodbye first
}

int NodeSetUp::gone(size_t first, size_t most) const {
  for (size_t i = 0; i < std::min(most, nodeRanks.size()); ++i) {
    const int rank = nodeRanks[(first + i) % nodeRanks.size()];
    if (isGone(rank)) return rank;
  }
  return -1;
}

NodeSetUp setUpNode(Bootstrap& bootstrap, const Settings& settings, const CommConfig& config,
                    uint64_t tableHash, const std::atomic<bool>* abort) {
  const Wait wait{Deadline::in(settings.initTimeout), abort};
  std::vector<RankIntroduction> ranks;
  for (const std::string& blob : bootstrap.allGather(encode(introduce(settings, config, tableHash))))
    ranks.push_back(decodeIntroduction(blob, static_cast<int>(ranks.size())));
  checkAgreement(ranks);

  NodeSetUp node;
  const Neighbours neighbours = findNeighbours(ranks, bootstrap.rank(), node);
  node.cores = countCores(ranks, node.nodeRanks);

  // Collective, so every rank calls it; each process's first rank gets the file and maps it for all of them.
  const auto nodeRanks = static_cast<int>(node.nodeRanks.size());
  const bool shared = !neighbours.share.receivers.empty();
  MemoryFile file = shareOnNode(
      bootstrap, neighbours.share, [&] { return NodeMemory::make(nodeRanks, shared); }, wait);
  std::function<std::shared_ptr<NodeMemory>()> make;
  if (bootstrap.rank() == neighbours.firstOfProcess)
    make = [&] {
      // Its size is what the leader told: everything in it is found by ours.
      if (file.bytes() != NodeMemory::bytes(nodeRanks))
        throw Error(Code::RemoteError, concat("rank ", neighbours.share.leader, " shared ", file.bytes(),
                                              " bytes of memory where ", nodeRanks, " ranks need ",
                                              NodeMemory::bytes(nodeRanks)));
      return std::make_shared<NodeMemory>(std::move(file), nodeRanks);
    };
  const uint64_t key = ranks[static_cast<size_t>(neighbours.share.leader)].facts.nonce;
  const auto check = [&] {
    throwIfOver(wait, "waiting for this process's first rank to share its node's memory");
    const std::optional<PeerFailure> failure = bootstrap.failure();
    if (failure) throw Error(Code::RemoteError, concat("rank ", failure->rank, " failed: ", failure->reason));
  };
  node.memory = sharedNodeMemory(key, neighbours.processRanks, make, check);
  node.memory->enter(node.places[static_cast<size_t>(bootstrap.rank())].nodeRank);
  storeRelease(&node.memory->board().touch(node.nodeRankOf(bootstrap.rank())).process,
               static_cast<uint32_t>(::getpid()));
  bootstrap.barrier();  // all have entered
  return node;
}

}  // namespace topoccl
