// All handles that ever were; see communicator.h.
#pragma once

#include <unistd.h>

#include <deque>
#include <memory>
#include <mutex>
#include <new>

#include "base/fork_safety.h"
#include "communicator/communicator.h"
#include "communicator/member.h"
#include "kernels/sync.h"

namespace topoccl {

class HandlePool {
 public:
  static HandlePool& instance() {
    static auto* const pool = new HandlePool;  // outlives every user, also at exit
    return *pool;
  }

  static std::mutex& mutex() { return instance().mutex_; }

  // In a fork's child. Its parent's handles are never used again: they stay recognisable, and somebody may
  // have been inside.
  void forget() { free_.clear(); }

  // Live with a member, pending without.
  Communicator* take(std::unique_ptr<Member> member) {
    const std::scoped_lock lock(mutex_);
    if (free_.size() <= kDeadHandles) free_.push_front(&all_.emplace_back());
    Communicator* const handle = free_.front();
    free_.pop_front();
    handle->process_ = ::getpid();
    storeRelaxed(&handle->generation_, processGeneration());
    handle->member_ = std::move(member);
    storeRelease(&handle->life_, handle->member_ ? Communicator::kLive : Communicator::kPending);
    return handle;
  }

  void giveBack(Communicator* handle) noexcept {
    const std::scoped_lock lock(mutex_);
    try {
      free_.push_back(handle);
    } catch (const std::bad_alloc&) {  // it is never used again
    }
  }

 private:
  // So many communicators die before a handle is used again: a stale one is recognised until then.
  static constexpr size_t kDeadHandles = 4096;

  std::mutex mutex_;
  std::deque<Communicator> all_;
  std::deque<Communicator*> free_;  // new ones in front, the dead in order of death
};

}  // namespace topoccl
