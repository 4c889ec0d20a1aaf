// The calls of one rank in a task, on their way through the driver: in lines, of which each runs in order.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "communicator/call.h"
#include "communicator/collective_work.h"
#include "communicator/communicator.h"
#include "communicator/member.h"
#include "communicator/peer_work.h"

namespace topoccl {

class RankWorks {
 public:
  // Throws if the communicator died meanwhile or can't be used. Keeps it from ending until letGo().
  explicit RankWorks(Communicator& communicator);

  Communicator& communicator() const { return *communicator_; }
  Member& member() const { return *member_; }
  Doorbell* doorbell() const { return member_->doorbell(); }

  // The call takes its number.
  template <class Call>
  void issue(const Call& call) {
    lineOf(keyOf(call)).works.emplace_back(member_->issue(call));
  }

  // A queue per line, to be added to others'.
  void addQueues(std::vector<WorkQueue>& queues);
  size_t lines() const { return lines_.size(); }
  // One line has run to its end. True for the last one.
  bool endLine() { return ++linesEnded_ == lines_.size(); }

  bool ended() const { return linesEnded_ == lines_.size(); }
  bool dropped() const { return dropped_; }
  void drop();
  void letGo() { operation_.reset(); }

 private:
  // Lines run side by side. Collectives are one; sends to a peer are one, receives from it another.
  struct Key {
    int peer = -1;  // -1: collectives
    bool sends = false;
    bool operator==(const Key& other) const = default;
  };
  struct Line {
    Key key;
    std::deque<std::variant<CollectiveWork, PeerWork>> works{};  // which stay where they are
    std::vector<Work*> pointers{};
  };

  static Key keyOf(const CollectiveCall&) { return {}; }
  static Key keyOf(const PeerCall& call) { return {call.peer, call.sends}; }
  Line& lineOf(const Key& key);

  Communicator* communicator_;
  std::optional<Communicator::Operation> operation_;
  Member* member_;
  std::shared_ptr<NodeMemory> memory_;  // holds the doorbell that the waiter uses to the end
  std::deque<Line> lines_;
  size_t linesEnded_ = 0;
  bool dropped_ = false;
};

}  // namespace topoccl
