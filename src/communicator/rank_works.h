// The calls of one rank in a task.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "communicator/call_lines.h"
#include "communicator/communicator.h"
#include "communicator/member.h"

namespace topoccl {

class RankWorks {
 public:
  // Throws if the communicator died meanwhile or can't be used. Keeps it from ending until letGo().
  explicit RankWorks(Communicator& communicator);

  Communicator& communicator() const { return *communicator_; }
  Member& member() const { return *member_; }
  Doorbell* doorbell() const { return member_->doorbell(); }

  // At most that many calls will be issued.
  void begin(size_t calls) { lines_.begin(calls); }
  // The call takes its number.
  template <class Call>
  void issue(const Call& call) {
    lines_.add(call, [this](const Call& it) { return member_->issue(it); });
  }

  void addQueues(std::vector<WorkQueue>& queues) const { lines_.addQueues(queues); }
  size_t lines() const { return lines_.count(); }
  // One line has run to its end. True for the last one.
  bool endLine() { return ++linesEnded_ == lines_.count(); }

  bool ended() const { return linesEnded_ == lines_.count(); }
  bool dropped() const { return dropped_; }
  void drop();
  void letGo() { operation_.reset(); }

 private:
  Communicator* communicator_;
  std::optional<Communicator::Operation> operation_;
  Member* member_;
  std::shared_ptr<NodeMemory> memory_;  // holds the doorbell that the waiter uses to the end
  CallLines lines_;
  size_t linesEnded_ = 0;
  bool dropped_ = false;
};

}  // namespace topoccl
