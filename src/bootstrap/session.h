// The root's knowledge of one communicator: who joined, what round of allGather is open, who failed. No
// sockets and no clock of its own: connections are numbers, the time is an argument, so that every case can
// be tested without either.
//
// A session is first open (ranks join), then complete (all joined and were welcomed) or failed. The first
// failure is told to every member once, and to every rank that joins later; nothing works after it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/deadline.h"
#include "bootstrap/frame.h"
#include "bootstrap/messages.h"

namespace topoccl {

class Session {
 public:
  using Time = Deadline::Clock::time_point;
  using Send = std::function<void(int connection, Message kind, const Payload& payload)>;

  // `self`: what members are told about the root's process. After a failure the root stays for `linger` at
  // most to tell ranks that come late. `send` must not call back.
  Session(Welcome self, std::chrono::milliseconds linger, Send send);

  // A frame from an authenticated connection that proved to be `claimedRank`.
  void onFrame(int connection, uint32_t claimedRank, const Frame& frame, Time now);
  void onClosed(int connection, const std::string& why);
  void onTick(Time now);
  // Why others may have been unable to join, if they stay away.
  void noteObstacle(std::string why) { obstacle_ = std::move(why); }
  // So may somebody who did not hold the secret.
  void noteStranger() { ++strangers_; }

  // When onTick has something to do.
  Deadline nextTick() const;
  bool complete() const { return complete_; }
  bool failed() const { return failure_.has_value(); }
  bool isMember(int connection) const { return rankOf_.contains(connection); }
  // Nothing is left to be done or told.
  bool finished() const { return finished_; }

 private:
  struct Member {
    int connection = -1;
    Join join;
    std::optional<std::string> blob;  // contribution to the open round
    bool connected = true;
    bool left = false;
  };

  void onJoin(int connection, uint32_t claimedRank, const Join& join, Time now);
  void onGather(Member& member, Contribution contribution, Time now);
  void onLeave(Member& member);
  std::optional<Failure> objection(const Join& join) const;
  void welcome();
  void finishRound();
  void fail(Failure failure);
  void tellOfFailure(int connection, int rank, uint64_t process);
  void tellHeld();
  void waitAtMost(uint32_t milliseconds, Time now);
  std::vector<int> absent(bool fromRound) const;
  void settle();

  Welcome self_;
  std::chrono::milliseconds linger_;
  Send send_;

  int ranks_ = 0;  // 0: nobody joined yet
  uint32_t version_ = 0;
  std::map<int, Member> members_;
  std::unordered_map<int, int> rankOf_;  // by connection
  std::string obstacle_;
  uint64_t strangers_ = 0;
  bool complete_ = false;
  bool finished_ = false;
  std::optional<Failure> failure_;
  std::set<int> told_;  // ranks that know of the failure, or are about to
  // Who lives in the root's process and has not been told yet: it may end that process as soon as it hears.
  std::vector<int> held_;
  Deadline holdUntil_ = Deadline::never();
  size_t blobs_ = 0;  // contributions to the open round
  size_t bytes_ = 0;  // and their size
  int connected_ = 0;
  int atRoot_ = 0;                         // members in the root's process that have not left
  Deadline patience_ = Deadline::never();  // of the rank in the open round that waits shortest
  long long patienceMilliseconds_ = 0;
  Deadline end_ = Deadline::never();  // of lingering after a failure
};

}  // namespace topoccl
