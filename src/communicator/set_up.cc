// How communicators come to be: init, split, on the calling thread or in the background.
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "bootstrap/service_thread.h"
#include "communicator/communicator.h"
#include "communicator/group.h"
#include "communicator/handle_pool.h"
#include "communicator/member.h"
#include "communicator/part_watch.h"
#include "communicator/query.h"
#include "communicator/shrink.h"
#include "communicator/split.h"
#include "communicator/task.h"
#include "device/local_devices.h"
#include "kernels/sync.h"

namespace topoccl {

namespace {

Settings currentSettings(const Deadlines& deadlines = {}) {
  Settings settings = readSettings();
  settings.initTimeout = deadlines.init.value_or(settings.initTimeout);
  settings.collectiveTimeout = deadlines.collective.value_or(settings.collectiveTimeout);
  settings.reportAfter = deadlines.report.value_or(settings.reportAfter);
  if (settings.device == DeviceChoice::Cuda)
    throw Error(Code::InvalidUsage, "TOPOCCL_DEVICE=cuda: this build has no CUDA device; use auto or cpu");
  return settings;
}

void checkDevices(int count, const int* devices) {
  const int known = localDeviceCount();
  for (int i = 0; devices != nullptr && i < count; ++i)
    if (devices[i] < 0 || devices[i] >= known)
      throw Error(Code::InvalidArgument,
                  concat("devlist[", i, "] is ", devices[i], "; it must be in 0..", known - 1));
}

// A rank out of range goes to the root too, which tells the others; the caller learns that it was its
// mistake.
std::unique_ptr<Bootstrap> connectAs(const UniqueId& id, int ranks, int rank, const Settings& settings,
                                     const std::atomic<bool>* abort) {
  try {
    return connectBootstrap(id, ranks, rank, settings, abort);
  } catch (const Error& error) {
    if (rank >= 0 && rank < ranks) throw;
    throw Error(Code::InvalidArgument, error.what());
  }
}

Member::AbortFlag newAbortFlag() {
  return std::make_shared<std::atomic<bool>>(false);
}

}  // namespace

void Communicator::initRank(Communicator** out, int ranks, const void* id128, int rank,
                            const CommConfig& config) {
  UniqueId id;
  std::memcpy(id.bytes.data(), id128, id.bytes.size());
  const Member::AbortFlag abort = newAbortFlag();
  auto init = [=] {
    make(out, config.blocking != 0, abort, [=] {
      const Settings settings = currentSettings(config.deadlines);
      auto bootstrap = connectAs(id, ranks, rank, settings, abort.get());
      return std::make_unique<Member>(std::move(bootstrap), abort, settings, config, -1);
    });
  };
  if (group::open()) return group::addInit(std::move(init), abort);
  init();
}

void Communicator::make(Communicator** out, bool blocking, const AbortFlag& abort,
                        const MakeMember& makeMember) {
  if (blocking) {
    *out = HandlePool::instance().take(makeMember());
    return;
  }
  Communicator* const handle = HandlePool::instance().take(nullptr);
  handle->abort_ = abort;
  handle->settingUp_ = 1;
  try {
    startServiceThread("topoccl-init", [handle, makeMember] { handle->setUp(makeMember); });
  } catch (...) {
    handle->settingUp_ = 0;
    storeRelease(&handle->life_, kDead);
    HandlePool::instance().giveBack(handle);
    throw;
  }
  *out = handle;
  throw Error(Code::InProgress, "the communicator is being set up");
}

void Communicator::setUp(const MakeMember& makeMember) noexcept {
  uint32_t life = kFailed;
  try {
    member_ = makeMember();
    life = kLive;
  } catch (const Error& error) {
    setUpError_ = error;
  } catch (const std::exception&) {
    setUpError_ = outOfMemoryError();
  }
  if (!compareExchange(&life_, kPending, life)) {  // destroyed or aborted meanwhile
    if (member_) member_->leave();
    storeRelease(&settingUp_, 0U);
    return retire();
  }
  storeRelease(&settingUp_, 0U);
}

void Communicator::initAll(Communicator** out, int count, const int* devices) {
  checkDevices(count, devices);
  const Settings settings = currentSettings();
  std::vector<Member::AbortFlag> aborts;
  std::vector<const std::atomic<bool>*> flags;
  for (int i = 0; i < count; ++i) flags.push_back(aborts.emplace_back(newAbortFlag()).get());
  auto bootstraps = localBootstrap(count, settings, flags);
  GroupScope group;
  for (int i = 0; i < count; ++i) {
    const int device = devices == nullptr ? -1 : devices[i];
    // std::function wants copyable captures.
    auto bootstrap =
        std::make_shared<std::unique_ptr<Bootstrap>>(std::move(bootstraps[static_cast<size_t>(i)]));
    const Member::AbortFlag& abort = aborts[static_cast<size_t>(i)];
    group::addInit(
        [=] {
          out[i] = HandlePool::instance().take(
              std::make_unique<Member>(std::move(*bootstrap), abort, settings, CommConfig{}, device));
        },
        abort);
  }
  group.end();
}

// A split or shrink, as long as it needs its parent, which it keeps from ending. Those of one parent take
// turns, in order of issue: each is a few messages between its ranks.
class Communicator::Joining {
 public:
  explicit Joining(Communicator& parent) : parent_(&parent) {
    parent.enter(&parent.joining_);
    turn_ = parent.nextJoining_++;
  }
  ~Joining() {
    awaitTurn();
    storeRelease(&parent_->joiningTurn_, turn_ + 1);
    fetchAdd(&parent_->joining_, ~0U);
  }
  Joining(const Joining&) = delete;
  Joining& operator=(const Joining&) = delete;

  // What is before it ends by itself, or by an abort of the parent.
  Member& awaitTurn() const {
    while (loadAcquire(&parent_->joiningTurn_) != turn_) std::this_thread::sleep_for(kTurnPoll);
    return *parent_->member_;
  }
  Member& parent() const { return *parent_->member_; }

 private:
  static constexpr std::chrono::milliseconds kTurnPoll{1};

  Communicator* parent_;
  uint32_t turn_ = 0;
};

// This rank's member of the new communicator, nullptr where it is in none. Lets go of the parent on the way.
std::unique_ptr<Member> Communicator::memberOfChild(std::shared_ptr<Joining> joining, const Join& join,
                                                    const CommConfig& config, const AbortFlag& abort) {
  Member& parent = joining->awaitTurn();
  const Settings settings = parent.settings();
  const int device = parent.device();
  const SplitPart part = join(parent);
  PartWatch watch(parent.node(), parent.rank(), part);
  joining.reset();
  if (part.members.empty()) return nullptr;
  std::unique_ptr<Bootstrap> bootstrap;
  try {
    bootstrap = connectBootstrap(part.id, static_cast<int>(part.members.size()), part.rank, settings,
                                 abort.get(), [&] { watch.check(); });
  } catch (const Error& error) {
    // A survivor that gave up may be what the root tells of first.
    if (error.code() == Code::RemoteError) watch.checkNow();
    watch.giveUp(error.what());
    throw;
  } catch (const std::exception&) {
    watch.giveUp("out of memory");
    throw;
  }
  return std::make_unique<Member>(std::move(bootstrap), abort, settings, config, device);
}

CommConfig Communicator::configOr(const CommConfig* config) const {
  if (config != nullptr) return *config;
  const Query query(*this);
  return member_->config();
}

void Communicator::split(Communicator** out, int color, int key, const CommConfig* config) {
  const CommConfig wanted = configOr(config);
  const AbortFlag abort = newAbortFlag();
  auto run = [=, this] {
    *out = nullptr;
    auto joining = std::make_shared<Joining>(*this);  // std::function wants copyable captures
    joining->parent().throwIfUnusable();
    auto makeMember = [=, joining = std::move(joining)]() mutable {
      const auto join = [=](Member& parent) { return joinSplit(parent, color, key); };
      return memberOfChild(std::move(joining), join, wanted, abort);
    };
    makeChild(out, std::move(makeMember), color != kNoColor, wanted.blocking != 0, abort);
  };
  if (group::open()) return group::addInit(std::move(run), abort, this);
  run();
}

void Communicator::shrink(Communicator** out, const std::vector<int>& excluded, bool aborting,
                          const CommConfig* config) {
  const CommConfig wanted = configOr(config);
  const std::vector<int> remaining = remainingRanks(ranks(), rank(), excluded);
  const AbortFlag abort = newAbortFlag();
  auto run = [=, this] {
    *out = nullptr;
    if (aborting) abortCalls();
    auto joining = std::make_shared<Joining>(*this);
    const uint64_t count = joining->parent().nextShrink(remaining);
    auto makeMember = [=, joining = std::move(joining)]() mutable {
      const auto join = [&](Member& parent) {
        const Wait wait{Deadline::in(parent.settings().initTimeout), abort.get()};
        return joinShrink(parent, remaining, count, !aborting, wait);
      };
      return memberOfChild(std::move(joining), join, wanted, abort);
    };
    makeChild(out, std::move(makeMember), true, wanted.blocking != 0, abort);
  };
  if (group::open()) return group::addInit(std::move(run), abort, this);
  run();
}

void Communicator::makeChild(Communicator** out, MakeMember makeMember, bool included, bool blocking,
                             const AbortFlag& abort) {
  if (blocking) {
    auto member = makeMember();
    if (member) *out = HandlePool::instance().take(std::move(member));
    return;
  }
  fetchAdd(&splitting_, 1U);
  // Until all copies of what is to be done are gone: when the new communicator's state has been set.
  const std::shared_ptr<uint32_t> done(&splitting_, [](uint32_t* splitting) { fetchAdd(splitting, ~0U); });
  auto make = [done, makeMember = std::move(makeMember)] { return makeMember(); };
  if (included) return this->make(out, false, abort, std::move(make));
  startServiceThread("topoccl-split", std::move(make));
  throw Error(Code::InProgress, "the split is in progress");
}

// As abort() does, but the handle lives on.
void Communicator::abortCalls() {
  const Query query(*this);
  member_->requestAbort();
  Task::drop(*this);
  member_->failByAbort(
      Error(Code::InvalidUsage,
            concat("rank ", member_->rank(), ": the communicator was aborted (NCCL_SHRINK_ABORT)")));
  // Their buffers are the caller's again.
  for (; loadAcquire(&operation_) != 0; ::sched_yield()) Task::drop(*this);
  tasks_.drain();
}

// Of one that is still being set up, its thread does the rest: it notices within a wait's slice, or, where it
// takes part in a split of the parent, when that has its data.
bool Communicator::endSetUp() {
  if (compareExchange(&life_, kPending, kAbandoned)) {
    abort_->store(true);
    return true;
  }
  if (!compareExchange(&life_, kFailed, kAbandoned)) return false;
  while (loadAcquire(&settingUp_) != 0) ::sched_yield();  // its last line
  retire();
  return true;
}

}  // namespace topoccl
