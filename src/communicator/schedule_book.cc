#include "communicator/schedule_book.h"

#include <algorithm>
#include <string>
#include <utility>

#include "algorithms/catalog.h"
#include "base/error.h"
#include "base/logging.h"
#include "schedule/builder.h"
#include "schedule/goal.h"
#include "schedule/layout.h"

namespace topoccl {

namespace {

// What minCTAs can ask for: as many channels as NCCL has.
constexpr int kMostChannels = 64;

constexpr Protocol kPeerProtocol = Protocol::Packet;

RangeTable loadTable(const Settings& settings) {
  if (settings.rangeTable.empty()) return RangeTable::builtIn();
  // A table has blanks between its fields; a path without any is a path.
  const bool isText = settings.rangeTable.find_first_of(" \t\n") != std::string::npos;
  const bool isPath = !isText || settings.rangeTable.front() == '/' || settings.rangeTable.front() == '.';
  return isPath ? RangeTable::load(settings.rangeTable) : RangeTable::parse(settings.rangeTable);
}

SlotWishes slotWishes(const Settings& settings) {
  return {static_cast<uint32_t>(settings.slots), static_cast<uint64_t>(settings.slotBytes),
          static_cast<uint64_t>(settings.bufferBytes)};
}

}  // namespace

ScheduleBook::ScheduleBook(int rank, int ranks, const Settings& settings, const CommConfig& config)
    : rank_(rank),
      ranks_(ranks),
      wishes_(slotWishes(settings)),
      channels_(static_cast<int>(settings.channels)),
      minChannels_(config.minChannels),
      maxChannels_(config.maxChannels),
      table_(loadTable(settings)) {
  for (size_t i = 0; i < kCollectives; ++i)
    filters_[i] = parseFilter(static_cast<Collective>(i), settings.algorithms, settings.protocols);
}

void ScheduleBook::connectBy(std::unique_ptr<Connector> connector) {
  connections_ = std::make_unique<Connections>(std::move(connector));
}

// Of the larger buffer.
uint64_t ScheduleBook::bytesOf(const CollectiveCall& call) const {
  return call.count * elementBytes(call.type) * blocksOf(call.collective, ranks_);
}

Choice ScheduleBook::choose(const CollectiveCall& call) const {
  const ChoiceFilter& filter = filters_[static_cast<size_t>(call.collective)];
  Choice choice = table_.pick(call.collective, ranks_, bytesOf(call), filter);
  if (channels_ > 0) choice.channels = channels_;
  if (maxChannels_ > 0) choice.channels = std::min(choice.channels, maxChannels_);
  choice.channels = std::max(choice.channels, std::min(minChannels_, kMostChannels));
  return choice;
}

OpenSchedule& ScheduleBook::open(const CollectiveCall& call) {
  const uint64_t bytes = bytesOf(call);
  if (recent_.schedule != nullptr && recent_.collective == call.collective && recent_.root == call.root &&
      recent_.bytes == bytes)
    return *recent_.schedule;
  OpenSchedule& schedule = open(call, choose(call));
  if (schedule.ready()) recent_ = {call.collective, call.root, bytes, &schedule};
  return schedule;
}

OpenSchedule& ScheduleBook::open(const CollectiveCall& call, const Choice& choice) {
  std::unique_ptr<OpenSchedule>& entry =
      collectives_[{call.collective, call.root, choice.algorithm, choice.protocol, choice.channels}];
  if (!entry) {
    auto [schedule, slots] = plan(call, choice);
    entry = std::make_unique<OpenSchedule>(std::move(schedule), choice.protocol, slots);
    log(Level::Info, Subsystem::Coll, "rank ", rank_, " opens ", name(call.collective), ' ',
        name(choice.algorithm), '/', name(choice.protocol), '/', choice.channels, " with ", slots.slots,
        " slots of ", slots.slotBytes, " bytes");
  }
  entry->connect(*connections_);
  return *entry;
}

ScheduleBook::Planned ScheduleBook::plan(const CollectiveCall& call, const Choice& choice) const {
  const AlgorithmRow& algorithm = row(call.collective, choice.algorithm);
  Schedule schedule = algorithm.emit(flatLayout(ranks_, choice.channels), rank_, std::max(call.root, 0));
  const uint32_t sends = algorithm.sendConnections(ranks_) * static_cast<uint32_t>(choice.channels);
  const SlotPlan slots = planSlots(schedule, sends, wishes_);
  return {std::move(schedule), slots};
}

OpenSchedule& ScheduleBook::open(const PeerCall& call) {
  std::unique_ptr<OpenSchedule>& entry = peers_[{call.peer, call.sends}];
  if (!entry) {
    auto [schedule, slots] = plan(call);
    entry = std::make_unique<OpenSchedule>(std::move(schedule), kPeerProtocol, slots);
  }
  entry->connect(*connections_);
  return *entry;
}

// One step. Both ends of a connection to itself are this rank's: a schedule each.
ScheduleBook::Planned ScheduleBook::plan(const PeerCall& call) const {
  ScheduleBuilder builder(ranks_, rank_, 1);
  if (call.sends)
    builder.step({kIn}, {builder.send(call.peer, 0, kPeerTag)}, 0);
  else
    builder.step({builder.receive(call.peer, 0, kPeerTag)}, {kOut}, 0);
  Schedule schedule = builder.take();
  const SlotPlan slots = planSlots(schedule, static_cast<uint32_t>(ranks_), wishes_);
  return {std::move(schedule), slots};
}

CallPlan ScheduleBook::explain(const CollectiveCall& call) const {
  const Choice choice = choose(call);
  const auto [schedule, slots] = plan(call, choice);
  return {name(choice.algorithm), name(choice.protocol),         transportsOf(schedule),
          choice.channels,        static_cast<int>(slots.slots), slots.slotBytes};
}

CallPlan ScheduleBook::explain(const PeerCall& call) const {
  const auto [schedule, slots] = plan(call);
  return {"p2p", name(kPeerProtocol),           transportsOf(schedule),
          1,     static_cast<int>(slots.slots), slots.slotBytes};
}

std::string ScheduleBook::transportsOf(const Schedule& schedule) const {
  std::string names;
  for (const std::string transport : {"in-process", "shm"}) {
    const bool used =
        std::any_of(schedule.connections.begin(), schedule.connections.end(), [&](const Connection& c) {
          return transport == connections_->transportTo(c.from == rank_ ? c.readers.front() : c.from);
        });
    if (used) names += (names.empty() ? "" : "+") + transport;
  }
  return names.empty() ? "none" : names;
}

}  // namespace topoccl
