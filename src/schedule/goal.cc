#include "schedule/goal.h"

namespace topoccl {
namespace {

constexpr Presence kNone = Presence::None, kOwn = Presence::OwnBlock, kAll = Presence::All;

// A row per Collective: what the root and the other ranks have.
struct Row {
  const char* name;
  bool perRank;  // a block per rank
  bool reduces;
  bool inPlace;
  Presence in, out, rootIn, rootOut;
};

constexpr Row kRows[kCollectives] = {
    {"all-reduce", false, true, true, kAll, kAll, kAll, kAll},
    {"broadcast", false, false, true, kNone, kAll, kAll, kAll},
    {"reduce", false, true, true, kAll, kNone, kAll, kAll},
    {"all-gather", true, false, true, kOwn, kAll, kOwn, kAll},
    {"reduce-scatter", true, true, true, kAll, kOwn, kAll, kOwn},
    {"gather", true, false, true, kOwn, kNone, kOwn, kAll},
    {"scatter", true, false, true, kNone, kOwn, kAll, kOwn},
    {"all-to-all", true, false, false, kAll, kAll, kAll, kAll},
};

const Row& row(Collective collective) {
  return kRows[static_cast<size_t>(collective)];
}

Wanted wantedOf(Collective collective, int ranks, int root, int rank, uint32_t chunk) {
  const auto blocks = static_cast<uint32_t>(ranks);
  const auto block = static_cast<int>(chunk % blocks);
  switch (collective) {
    case Collective::AllReduce:
    case Collective::Reduce:
    case Collective::ReduceScatter:
      return {0, ranks, chunk};
    case Collective::Broadcast:
    case Collective::Scatter:
      return {root, 1, chunk};
    case Collective::AllGather:
    case Collective::Gather:
      return {block, 1, chunk};
    case Collective::AllToAll:
      return {block, 1, chunk / blocks * blocks + static_cast<uint32_t>(rank)};
  }
  return {};
}

}  // namespace

Goal goalOf(Collective collective, int ranks, int root) {
  const Row& it = row(collective);
  const auto present = [=](int rank, Place buffer, uint32_t chunk) {
    const Presence presence = presenceOf(collective, buffer, rank == root);
    if (presence != Presence::OwnBlock) return presence == Presence::All;
    return static_cast<int>(chunk % static_cast<uint32_t>(ranks)) == rank;
  };
  const auto wanted = [=](int rank, uint32_t chunk) {
    return present(rank, Place::Out, chunk) ? wantedOf(collective, ranks, root, rank, chunk) : Wanted{};
  };
  return {it.name, it.reduces, it.inPlace, wanted, present};
}

uint32_t blocksOf(Collective collective, int ranks) {
  return row(collective).perRank ? static_cast<uint32_t>(ranks) : 1;
}

bool reduces(Collective collective) {
  return row(collective).reduces;
}

bool hasRoot(Collective collective) {
  const Row& it = row(collective);
  return it.rootIn != it.in || it.rootOut != it.out;
}

bool allowsInPlace(Collective collective) {
  return row(collective).inPlace;
}

Presence presenceOf(Collective collective, Place buffer, bool isRoot) {
  const Row& it = row(collective);
  if (buffer == Place::In) return isRoot ? it.rootIn : it.in;
  return isRoot ? it.rootOut : it.out;
}

}  // namespace topoccl
