// A rank's end of a communicator whose root is reached by TCP. Threads as in bootstrap.h.
#pragma once

#include <string>

#include "bootstrap/bootstrap.h"
#include "bootstrap/control_connection.h"
#include "bootstrap/messages.h"

namespace topoccl {

class RemoteBootstrap : public Bootstrap {
 public:
  // `connection` has joined and was welcomed.
  RemoteBootstrap(ControlConnection connection, const Bytes32& key, int ranks, int rank,
                  const Welcome& welcome, std::chrono::milliseconds timeout, const std::atomic<bool>* abort);

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  std::vector<std::string> allGather(const std::string& mine) override;
  std::optional<PeerFailure> failure() override;
  void reportAbort(const std::string& why) noexcept override;
  void leave() noexcept override;
  Bytes32 deriveKey(const std::string& purpose) const override;

 private:
  std::string exchange(const std::string& mine);
  std::string awaitGathered(const std::string& what);
  void awaitFromRoot(Message kind) noexcept;
  void sendShortly(Message kind, const std::string& payload) noexcept;
  void onFrame(const Frame& frame);
  void note(const Failure& failure);
  void noteRootGone(const std::string& why);
  [[noreturn]] void throwFailure(const std::string& what) const;

  ControlConnection connection_;
  Bytes32 key_;
  int ranks_;
  int rank_;
  Welcome root_;
  std::chrono::milliseconds timeout_;
  const std::atomic<bool>* abort_;
  std::optional<Failure> failure_;
  bool rootMayGo_;  // the end of the root's process is no rank's death
  bool rootGone_ = false;
  bool left_ = false, reported_ = false;
};

}  // namespace topoccl
