// A rank's schedules: which one serves a call, made on first use and kept.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "algorithms/range_table.h"
#include "base/settings.h"
#include "communicator/call.h"
#include "communicator/communicator.h"
#include "communicator/connections.h"
#include "communicator/open_schedule.h"

namespace topoccl {

class ScheduleBook {
 public:
  // Throws InvalidArgument for settings that make no sense.
  ScheduleBook(int rank, int ranks, const Settings& settings, const CommConfig& config);

  // Before anything is opened.
  void connectBy(std::unique_ptr<Connector> connector);

  const RangeTable& table() const { return table_; }

  // The schedule for such a call; ready when all its connections are there. Throws Error.
  OpenSchedule& open(const CollectiveCall& call);
  OpenSchedule& open(const PeerCall& call);

  // What the range table and the settings choose.
  Choice choose(const CollectiveCall& call) const;
  CallPlan explain(const CollectiveCall& call) const;
  CallPlan explain(const PeerCall& call) const;

 private:
  using CollectiveKey = std::tuple<Collective, int, Algorithm, Protocol, int>;  // with root and choice
  using PeerKey = std::pair<int, bool>;                                         // with direction

  // This rank's schedule for a choice, and the slots of its connections.
  struct Planned {
    Schedule schedule;
    SlotPlan slots;
  };

  // What the last call used: the next is most often like it.
  struct Recent {
    Collective collective = Collective::AllReduce;
    int root = -1;
    uint64_t bytes = 0;
    OpenSchedule* schedule = nullptr;
  };

  OpenSchedule& open(const CollectiveCall& call, const Choice& choice);
  uint64_t bytesOf(const CollectiveCall& call) const;
  Planned plan(const CollectiveCall& call, const Choice& choice) const;
  Planned plan(const PeerCall& call) const;
  std::string transportsOf(const Schedule& schedule) const;

  int rank_;
  int ranks_;
  SlotWishes wishes_;
  int channels_;                   // 0: the table's
  int minChannels_, maxChannels_;  // 0: not set
  RangeTable table_;
  std::array<ChoiceFilter, kCollectives> filters_;
  std::unique_ptr<Connections> connections_;
  std::map<CollectiveKey, std::unique_ptr<OpenSchedule>> collectives_;
  std::map<PeerKey, std::unique_ptr<OpenSchedule>> peers_;
  Recent recent_;
};

}  // namespace topoccl
