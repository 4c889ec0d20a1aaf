#include "schedule/check/clocks.h"

#include <algorithm>

namespace topoccl {

Clocks::Clocks(const std::vector<uint32_t>& laneCounts) {
  firstLane_.push_back(0);
  for (const uint32_t count : laneCounts) firstLane_.push_back(firstLane_.back() + count);
  const auto nothing = std::make_shared<Known>(firstLane_.back());
  lanes_.resize(firstLane_.back(), {nothing, 0});
  begin_.resize(laneCounts.size(), nothing);
  release_.resize(laneCounts.size());
}

bool Clocks::knows(uint32_t lane, const Access& access) const {
  const LaneClock& clock = lanes_[lane];
  return access.time <= (access.lane == lane ? clock.time : (*clock.known)[access.lane]);
}

bool Clocks::knewAtBegin(int rank, const Access& access) const {
  // What nobody did is known to all, also where there are no lanes.
  return access.time == 0 || access.time <= (*begin_[static_cast<size_t>(rank)])[access.lane];
}

void Clocks::learn(uint32_t lane, const Stamp& stamp, std::shared_ptr<Known>& last) {
  LaneClock& clock = lanes_[lane];
  // Knowing a step means knowing all that the step knew.
  if (stamp.lane == lane || (*clock.known)[stamp.lane] >= stamp.time) return;
  if (clock.known.use_count() > 1) clock.known = std::make_shared<Known>(*clock.known);
  if (last != stamp.known) merge(*clock.known, *stamp.known);
  (*clock.known)[stamp.lane] = stamp.time;
  last = stamp.known;
}

void Clocks::release(uint32_t lane, int rank) {
  std::shared_ptr<Known>& released = release_[static_cast<size_t>(rank)];
  if (!released) released = std::make_shared<Known>(lanes_.size());
  mergeLane(*released, lane);
}

void Clocks::join(int rank) {
  const auto index = static_cast<size_t>(rank);
  auto joined = std::make_shared<Known>(lanes_.size());
  if (release_[index]) merge(*joined, *release_[index]);
  for (uint32_t lane = firstLane_[index]; lane < firstLane_[index + 1]; ++lane) mergeLane(*joined, lane);
  for (uint32_t lane = firstLane_[index]; lane < firstLane_[index + 1]; ++lane) lanes_[lane].known = joined;
  begin_[index] = joined;
  release_[index] = nullptr;
}

Access Clocks::user(int rank) {
  const uint32_t lane = firstLane_[static_cast<size_t>(rank)];
  const Access access{lane, tick(lane), kUserStep};
  join(rank);
  return access;
}

void Clocks::merge(Known& into, const Known& from) {
  for (size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], from[i]);
}

void Clocks::mergeLane(Known& into, uint32_t lane) const {
  const LaneClock& clock = lanes_[lane];
  // The lane's own entry in `known` may be older than its time.
  if (into[lane] < clock.time) {
    merge(into, *clock.known);
    into[lane] = std::max(into[lane], clock.time);
  }
}

}  // namespace topoccl
