// localBootstrap: the ranks of one process meet under a mutex.
#include <condition_variable>
#include <mutex>

#include "base/deadline.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/messages.h"
#include "bootstrap/rank_list.h"

namespace topoccl {
namespace {

using Blobs = std::vector<std::string>;

// Shared by all ranks; everything but the constants is guarded by `mutex`.
struct Meeting {
  const int ranks;
  const std::chrono::milliseconds timeout;
  const Bytes32 key = random<Bytes32>();

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::optional<std::string>> blobs;  // of the open round
  size_t bytes = 0;
  int arrived = 0;
  uint64_t round = 0;
  std::shared_ptr<const Blobs> gathered;  // by the round before
  std::vector<bool> left;
  std::optional<Failure> failure;

  Meeting(int ranks_, std::chrono::milliseconds timeout_)
      : ranks(ranks_),
        timeout(timeout_),
        blobs(static_cast<size_t>(ranks_)),
        left(static_cast<size_t>(ranks_), false) {}

  // The caller holds the mutex.
  void fail(Code code, int rank, std::string reason) {
    if (!failure) failure = Failure{code, rank, std::move(reason)};
    changed.notify_all();
  }

  void contribute(size_t rank, const std::string& blob) {
    for (size_t other = 0; other < left.size(); ++other)
      if (left[other])
        return fail(Code::RemoteError, static_cast<int>(other),
                    concat("rank ", other, " has left and takes part no more"));
    if (bytes + blob.size() > kMaxGatherBytes)
      return fail(Code::InvalidUsage, static_cast<int>(rank),
                  concat("contributions to an allGather exceed ", kMaxGatherBytes, " bytes with rank ", rank,
                         "'s ", blob.size()));
    // What needs memory first: where there is none, this rank has not arrived.
    const bool last = arrived + 1 == ranks;
    const auto all = last ? std::make_shared<Blobs>(static_cast<size_t>(ranks)) : nullptr;
    blobs[rank] = blob;
    bytes += blob.size();
    ++arrived;
    if (!last) return;
    for (size_t other = 0; other < blobs.size(); ++other) {
      (*all)[other] = std::move(*blobs[other]);
      blobs[other].reset();
    }
    gathered = all;
    bytes = 0;
    arrived = 0;
    ++round;
    changed.notify_all();
  }

  void failForAbsent() {
    std::vector<int> absent;
    for (int rank = 0; rank < ranks; ++rank)
      if (!blobs[static_cast<size_t>(rank)]) absent.push_back(rank);
    fail(Code::RemoteError, absent.front(),
         concat(rankList(absent), " of ", ranks, " did not come within ", initTimeoutText(timeout.count())));
  }
};

class LocalBootstrap : public Bootstrap {
 public:
  LocalBootstrap(std::shared_ptr<Meeting> meeting, int rank, const std::atomic<bool>* abort)
      : meeting_(std::move(meeting)), rank_(rank), abort_(abort) {}

  ~LocalBootstrap() override {
    if (!left_) failHere([&] { return concat("rank ", rank_, " is gone without a goodbye"); });
  }

  int rank() const override { return rank_; }
  int ranks() const override { return meeting_->ranks; }

  std::vector<std::string> allGather(const std::string& mine) override {
    const std::string what = concat("rank ", rank_, " waiting for the other ranks");
    std::unique_lock lock(meeting_->mutex);
    const uint64_t round = meeting_->round;
    if (!meeting_->failure) meeting_->contribute(static_cast<size_t>(rank_), mine);
    const Wait wait{Deadline::in(meeting_->timeout), abort_};
    while (meeting_->round == round && !meeting_->failure) {
      if (wait.aborted()) {
        meeting_->fail(Code::RemoteError, rank_, concat("rank ", rank_, " aborted"));
        throw AbortedError(what + ": aborted by this rank");
      }
      if (wait.deadline.passed())
        meeting_->failForAbsent();
      else
        meeting_->changed.wait_for(lock, kWaitSlice);
    }
    if (meeting_->round == round)
      throw Error(meeting_->failure->code, concat(what, ": ", meeting_->failure->reason));
    const std::shared_ptr<const Blobs> gathered = meeting_->gathered;
    lock.unlock();
    return *gathered;
  }

  std::optional<PeerFailure> failure() override {
    const std::lock_guard lock(meeting_->mutex);
    if (!meeting_->failure) return std::nullopt;
    return PeerFailure{meeting_->failure->rank, meeting_->failure->reason};
  }

  void reportAbort(const std::string& why) noexcept override {
    failHere([&] { return concat("rank ", rank_, " aborted: ", printable(why)); });
  }

  void leave() noexcept override {
    if (left_) return;
    left_ = true;
    bool waitedFor = false;
    {
      const std::lock_guard lock(meeting_->mutex);
      meeting_->left[static_cast<size_t>(rank_)] = true;
      waitedFor = meeting_->arrived > 0;
    }
    if (waitedFor)
      failHere([&] { return concat("rank ", rank_, " left while others wait for it in an allGather"); });
  }

  Bytes32 deriveKey(const std::string& purpose) const override {
    return mac(meeting_->key, {"derived", purpose});
  }

 private:
  // Without memory for the reason it fails without one.
  template <class Reason>
  void failHere(const Reason& reasonText) noexcept {
    std::string reason;
    try {
      reason = reasonText();
    } catch (const std::exception&) {
    }
    const std::lock_guard lock(meeting_->mutex);
    meeting_->fail(Code::RemoteError, rank_, std::move(reason));
  }

  std::shared_ptr<Meeting> meeting_;
  int rank_;
  const std::atomic<bool>* abort_;
  bool left_ = false;
};

}  // namespace

std::vector<std::unique_ptr<Bootstrap>> localBootstrap(int ranks, const Settings& settings,
                                                       std::vector<const std::atomic<bool>*> aborts) {
  if (ranks < 1) throw Error(Code::InvalidArgument, concat("a communicator needs ranks, not ", ranks));
  aborts.resize(static_cast<size_t>(ranks), nullptr);
  const auto meeting = std::make_shared<Meeting>(ranks, settings.initTimeout);
  std::vector<std::unique_ptr<Bootstrap>> all;
  for (int rank = 0; rank < ranks; ++rank)
    all.push_back(std::make_unique<LocalBootstrap>(meeting, rank, aborts[static_cast<size_t>(rank)]));
  return all;
}

}  // namespace topoccl
