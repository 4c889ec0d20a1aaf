#include "communicator/open_schedule.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.h"
#include "kernels/mix.h"

namespace topoccl {

namespace {

constexpr uint32_t kSlots = 4;
constexpr uint64_t kRingBudget = uint64_t{3} << 20;  // ten of these (algorithm x protocol) fit a region
constexpr uint64_t kLargestSlot = 128 << 10;
constexpr uint64_t kSmallestGranules = 4;

// What is the same at both ends of a connection and different from all other connections.
uint64_t connectionKey(const Connection& connection, uint64_t family, const Choice& choice) {
  uint64_t key = mix(family, static_cast<uint64_t>(choice.algorithm));
  key = mix(key, static_cast<uint64_t>(choice.protocol));
  key = mix(key, static_cast<uint64_t>(choice.channels));
  key = mix(key, static_cast<uint64_t>(connection.from));
  key = mix(key, static_cast<uint64_t>(connection.channel));
  key = mix(key, static_cast<uint64_t>(connection.tag));
  for (const int reader : connection.readers) key = mix(key, static_cast<uint64_t>(reader));
  return key;
}

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
    throw Error(Code::InvalidArgument,
                concat("a slot of ", wanted, " bytes is too large; see TOPOCCL_SLOT_BYTES"));
  plan.slotBytes = static_cast<uint32_t>(rounded);
  return plan;
}

OpenSchedule::OpenSchedule(Schedule schedule, uint64_t family, const Choice& choice, SlotPlan slots)
    : schedule_(std::move(schedule)),
      family_(family),
      choice_(choice),
      slots_(slots),
      endpoints_(schedule_.connections.size()),
      connected_(schedule_.connections.size()) {}

bool OpenSchedule::connect(Connector& connector) {
  if (bound_) return true;
  // Own rings first: no peer shall wait for ours because we wait for another's.
  if (!announced_) {
    for (size_t i = 0; i < endpoints_.size(); ++i)
      if (schedule_.connections[i].from == schedule_.rank) connectOne(connector, i);
    announced_ = true;
  }
  for (size_t i = 0; i < endpoints_.size(); ++i)
    if (connected_[i] == 0 && !connectOne(connector, i)) return false;
  bound_.emplace(std::move(schedule_), std::move(endpoints_));
  return true;
}

const ChunkMap& OpenSchedule::chunkMap(uint64_t count, uint32_t elementBytes) {
  if (mapElementBytes_ != elementBytes || map_.count != count)
    map_ = makeChunkMap(count, elementBytes, schedule().chunks, slots_.slotBytes, schedule().slotChunks,
                        schedule().blocks);
  mapElementBytes_ = elementBytes;
  return map_;
}

bool OpenSchedule::connectOne(Connector& connector, size_t index) {
  const Connection& connection = schedule_.connections[index];
  const RingShape shape{slots_.slots, slots_.slotBytes, static_cast<uint32_t>(connection.readers.size())};
  const ConnectionPlan plan{&connection, connectionKey(connection, family_, choice_), shape,
                            choice_.protocol};
  if (!connector.connect(plan, endpoints_[index])) return false;
  connected_[index] = 1;
  return true;
}

}  // namespace topoccl
