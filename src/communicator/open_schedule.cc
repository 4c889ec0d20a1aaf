#include "communicator/open_schedule.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.h"

namespace topoccl {

namespace {

constexpr uint32_t kSlots = 4;
// Rings of one shape; a region takes eleven: the shapes of five algorithms with two protocols, which all
// collectives share, and that of point-to-point calls.
constexpr uint64_t kRingBudget = uint64_t{11} << 18;
constexpr uint64_t kLargestSlot = 128 << 10;
constexpr uint64_t kSmallestGranules = 4;

}  // namespace

SlotPlan planSlots(const Schedule& schedule, uint32_t sendConnections, const SlotWishes& wishes) {
  SlotPlan plan;
  plan.slots = std::bit_ceil(std::max(wishes.slots == 0 ? kSlots : wishes.slots, schedule.minSlots));
  const uint64_t unit = uint64_t{kGranuleBytes} * schedule.slotChunks;
  uint64_t wanted = wishes.slotBytes;
  if (wanted == 0) {
    uint64_t ring = kRingBudget / std::max(1U, sendConnections);
    if (wishes.ringBytes != 0) ring = std::min(ring, wishes.ringBytes);
    const uint64_t fair = ring / plan.slots;
    wanted = std::max(std::min(std::bit_floor(std::max<uint64_t>(fair, 1)), kLargestSlot),
                      kSmallestGranules * unit);
  }
  const uint64_t rounded = std::max(wanted / unit, uint64_t{1}) * unit;
  if (rounded > UINT32_MAX / 2)
    throw Error(Code::InternalError,
                concat("a slot of ", rounded, " bytes is too large; the most is ", UINT32_MAX / 2));
  plan.slotBytes = static_cast<uint32_t>(rounded);
  return plan;
}

OpenSchedule::OpenSchedule(Schedule schedule, Protocol protocol, SlotPlan slots)
    : schedule_(std::move(schedule)),
      protocol_(protocol),
      slots_(slots),
      endpoints_(schedule_.connections.size()) {}

void OpenSchedule::connect(Connections& connections) {
  if (bound_) return;
  // Own rings first: no peer shall wait for ours because we wait for another's.
  if (!announced_) {
    for (size_t i = 0; i < endpoints_.size(); ++i)
      if (schedule_.connections[i].from == schedule_.rank) connectOne(connections, i);
    announced_ = true;
  }
  for (size_t i = 0; i < endpoints_.size(); ++i)
    if (endpoints_[i] == nullptr && !connectOne(connections, i)) return;
  bound_.emplace(std::move(schedule_), std::move(endpoints_));
}

int OpenSchedule::missing() const {
  const auto first = std::find(endpoints_.begin(), endpoints_.end(), nullptr);
  return first == endpoints_.end()
             ? -1
             : schedule_.connections[static_cast<size_t>(first - endpoints_.begin())].from;
}

const ChunkMap& OpenSchedule::chunkMap(uint64_t count, uint32_t elementBytes) {
  if (mapElementBytes_ != elementBytes || map_.count != count)
    map_ = makeChunkMap(count, elementBytes, schedule().chunks, slots_.slotBytes, schedule().slotChunks,
                        schedule().blocks);
  mapElementBytes_ = elementBytes;
  return map_;
}

bool OpenSchedule::connectOne(Connections& connections, size_t index) {
  endpoints_[index] =
      connections.open(schedule_.connections[index], protocol_, slots_.slots, slots_.slotBytes);
  return endpoints_[index] != nullptr;
}

}  // namespace topoccl
