// Calls of one rank that run together, on their way through the driver: in lines, which run side by side, and
// of which each runs in order. Used again it allocates nothing.
#pragma once

#include <cstddef>
#include <variant>
#include <vector>

#include "communicator/call.h"
#include "communicator/collective_work.h"
#include "communicator/peer_work.h"

namespace topoccl {

class CallLines {
 public:
  // Forgets what was there and makes room for that many calls.
  void begin(size_t calls);

  // Adds what issue(call) returns, which takes a number: it is asked when there is memory for it.
  template <class Call, class Issue>
  void add(const Call& call, const Issue& issue) {
    std::vector<Work*>& line = lineOf(keyOf(call)).works;
    Work*& place = line.emplace_back();
    place = std::visit([](auto& work) -> Work* { return &work; }, works_.emplace_back(issue(call)));
  }

  // A queue per line, to be added to others'.
  void addQueues(std::vector<WorkQueue>& queues) const;
  size_t count() const { return used_; }

 private:
  // Collectives are one line; sends to a peer are one, receives from it another.
  struct Key {
    int peer = -1;  // -1: collectives
    bool sends = false;
    bool operator==(const Key& other) const = default;
  };
  struct Line {
    Key key;
    std::vector<Work*> works{};
  };
  using AnyWork = std::variant<CollectiveWork, PeerWork>;

  static Key keyOf(const CollectiveCall&) { return {}; }
  static Key keyOf(const PeerCall& call) { return {call.peer, call.sends}; }
  Line& lineOf(const Key& key);

  std::vector<AnyWork> works_;  // never more than there is room for: lines point at them
  std::vector<Line> lines_;
  size_t used_ = 0;  // of the lines
};

}  // namespace topoccl
