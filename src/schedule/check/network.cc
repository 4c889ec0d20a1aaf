#include "schedule/check/network.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "schedule/text.h"
#include "schedule/validate.h"

namespace topoccl {
namespace {

struct KeyPointerOrder {
  bool operator()(const Connection* a, const Connection* b) const { return KeyOrder()(*a, *b); }
};

bool offersDestination(const Schedule& schedule, const Step& step) {
  const Operand* operands = schedule.operands.data() + step.firstOperand;
  return step.inputCount == 1 && operands[0].place == Place::Receive && step.outputCount == 1 &&
         operands[1].place == Place::Out && !step.final;
}

}  // namespace

Network::Network(const std::vector<Schedule>& schedules, std::string& flaw) {
  std::map<const Connection*, uint32_t, KeyPointerOrder> numbers;
  std::vector<size_t> mentions;
  for (const Schedule& schedule : schedules) {
    std::vector<uint32_t>& ends = ends_.emplace_back();
    for (const Connection& key : schedule.connections) {
      const auto [found, isNew] = numbers.try_emplace(&key, static_cast<uint32_t>(links_.size()));
      if (isNew) {
        Link& link = links_.emplace_back();
        link.key = &key;
        for (const int rank : key.readers) link.readers.emplace_back().rank = rank;
        mentions.push_back(0);
      }
      ends.push_back(found->second);
      ++mentions[found->second];
    }
  }
  for (size_t i = 0; i < links_.size(); ++i) {
    const Connection& key = *links_[i].key;
    const bool self = std::binary_search(key.readers.begin(), key.readers.end(), key.from);
    if (mentions[i] != key.readers.size() + (self ? 0 : 1))
      flaw = concat("connection ", print(key), ": only ", mentions[i], " of its ranks have it");
  }
  uint32_t lane = 0;
  for (const Schedule& schedule : schedules) {
    noteUses(schedule, lane);
    lane += static_cast<uint32_t>(schedule.lanes.size());
  }
}

void Network::noteUses(const Schedule& schedule, uint32_t firstLane) {
  for (uint32_t lane = 0; lane < schedule.lanes.size(); ++lane)
    for (uint32_t s = 0; s < schedule.lanes[lane].stepCount; ++s)
      noteUse(schedule, schedule.steps[schedule.lanes[lane].firstStep + s], firstLane + lane);
}

void Network::noteUse(const Schedule& schedule, const Step& step, uint32_t lane) {
  for (uint32_t i = 0; i < step.inputCount + step.outputCount; ++i) {
    const Operand& operand = schedule.operands[step.firstOperand + i];
    if (operand.place == Place::Send) {
      Link& sending = link(schedule.rank, operand);
      sending.used = true;
      sending.senderLane = lane;
    } else if (operand.place == Place::Receive) {
      Reader& receiving = reader(schedule.rank, operand);
      receiving.used = true;
      receiving.lane = lane;
      receiving.steps.push_back({&step, offersDestination(schedule, step)});
    }
  }
}

Reader& Network::reader(int rank, const Operand& operand) {
  Link& of = link(rank, operand);
  const auto& readers = of.key->readers;
  const auto found = std::lower_bound(readers.begin(), readers.end(), rank);
  return of.readers[static_cast<size_t>(found - readers.begin())];
}

Message* Network::next(Link& link, const Reader& reader) {
  const uint64_t ahead = reader.received - link.freed;
  return ahead < link.slots.size() ? &link.slots[ahead] : nullptr;
}

void Network::free(Link& link, Reader& reader) {
  --next(link, reader)->readersLeft;
  ++reader.received;
  while (!link.slots.empty() && link.slots.front().readersLeft == 0) {
    link.slots.pop_front();
    ++link.freed;
  }
}

}  // namespace topoccl
