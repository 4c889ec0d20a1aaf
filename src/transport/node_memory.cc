#include "transport/node_memory.h"

#include <utility>

#include "base/error.h"
#include "kernels/sync.h"

namespace topoccl {

namespace {

constexpr uint64_t kPageBytes = 4096;

uint64_t roundUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Whether a ring of `bytes` may lie at `offset` of a region whose directory takes `directoryBytes`. Offsets
// stand in memory that others write too.
bool inRegion(uint64_t offset, uint64_t bytes, uint64_t directoryBytes) {
  return offset % kLineBytes == 0 && offset >= directoryBytes && bytes <= NodeMemory::kRegionBytes &&
         offset <= NodeMemory::kRegionBytes - bytes;
}

uint64_t boardBytes(int nodeRanks) {
  return roundUp(Board::bytes(nodeRanks), kPageBytes);
}

}  // namespace

struct NodeMemory::Region {
  alignas(kLineBytes) uint64_t entryCount;
  uint64_t usedBytes;
  alignas(kLineBytes) DirectoryEntry entries[kDirectoryEntries];
};

uint64_t NodeMemory::bytes(int nodeRanks) {
  return boardBytes(nodeRanks) + static_cast<uint64_t>(nodeRanks) * kRegionBytes;
}

MemoryFile NodeMemory::make(int nodeRanks, bool shared) {
  if (!shared) return MemoryFile::anonymous(bytes(nodeRanks));
  MemoryFile memory = MemoryFile::createSparse(bytes(nodeRanks), "topoccl-node");
  // What readers look at before any ring is made.
  memory.reserve(0, boardBytes(nodeRanks));
  for (int i = 0; i < nodeRanks; ++i)
    memory.reserve(boardBytes(nodeRanks) + static_cast<uint64_t>(i) * kRegionBytes, sizeof(Region));
  return memory;
}

NodeMemory::NodeMemory(MemoryFile memory, int nodeRanks) : memory_(std::move(memory)), nodeRanks_(nodeRanks) {
  board_ = Board(memory_.data(), nodeRanks);
  regions_ = reinterpret_cast<unsigned char*>(memory_.data()) + boardBytes(nodeRanks);
}

NodeMemory::Region& NodeMemory::region(int nodeRank) const {
  return *reinterpret_cast<Region*>(regions_ + static_cast<uint64_t>(nodeRank) * kRegionBytes);
}

RingView NodeMemory::makeRing(int producer, uint64_t key, RingShape shape) {
  Region& region = this->region(producer);
  const uint64_t taken = loadRelaxed(&region.usedBytes),
                 count = loadAcquire(&region.entryCount);  // read once
  const uint64_t used = taken == 0 ? roundUp(sizeof(Region), kPageBytes) : taken;
  const uint64_t need = roundUp(RingView::bytes(shape), kLineBytes);
  if (count > kDirectoryEntries || !inRegion(used, 0, sizeof(Region)))
    throw Error(Code::InternalError, "the directory of rings is damaged");
  if (count == kDirectoryEntries || need > kRegionBytes - used)
    throw Error(Code::SystemError, concat("no room for another connection: it needs ", need, " bytes; ", used,
                                          " of ", kRegionBytes, " bytes and ", count, " of ",
                                          kDirectoryEntries, " entries are in use on node rank ", producer,
                                          "; lower TOPOCCL_SLOT_BYTES, TOPOCCL_SLOTS or TOPOCCL_CHANNELS"));
  memory_.reserve(static_cast<uint64_t>(reinterpret_cast<unsigned char*>(&region) -
                                        reinterpret_cast<unsigned char*>(memory_.data())) +
                      used,
                  need);
  region.usedBytes = used + need;
  RingView ring(reinterpret_cast<unsigned char*>(&region) + used, shape);
  ring.description() = {kRingMagic, shape, ownMemory()};
  DirectoryEntry& entry = region.entries[count];
  entry = {key, used};
  // Pairs with findRing's acquire: whoever sees the count sees the entry and the description.
  storeRelease(&region.entryCount, count + 1);
  return ring;
}

bool NodeMemory::findRing(int producer, uint64_t key, RingShape shape, RingView& ring) const {
  Region& region = this->region(producer);
  const uint64_t count = loadAcquire(&region.entryCount);
  if (count > kDirectoryEntries) throw Error(Code::InternalError, "the directory of rings is damaged");
  for (uint64_t i = 0; i < count; ++i) {
    const DirectoryEntry& entry = region.entries[i];
    if (entry.key != key) continue;
    const uint64_t offset = loadRelaxed(&entry.offset);  // once: what is checked is what is used
    if (!inRegion(offset, RingView::bytes(shape), sizeof(Region)))
      throw Error(Code::InternalError, "a ring lies outside its region");
    RingView found(reinterpret_cast<unsigned char*>(&region) + offset, shape);
    const RingDescription& description = found.description();
    if (description.magic != kRingMagic || !(description.shape == shape))
      throw Error(
          Code::InternalError,
          concat("node rank ", producer, " made a ring of ", description.shape.slots, " x ",
                 description.shape.slotBytes, " bytes for ", description.shape.readers, " readers where ",
                 shape.slots, " x ", shape.slotBytes, " bytes for ", shape.readers, " were expected"));
    ring = found;
    return true;
  }
  return false;
}

void NodeMemory::enter(int nodeRank) const {
  memory_.lock(static_cast<size_t>(nodeRank));
}

bool NodeMemory::present(int nodeRank) const {
  return memory_.lockedElsewhere(static_cast<size_t>(nodeRank));
}

}  // namespace topoccl
