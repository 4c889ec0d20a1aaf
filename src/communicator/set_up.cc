// How communicators come to be: init, split, on the calling thread or in the background.
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
#include "communicator/query.h"
#include "communicator/split.h"
#include "device/local_devices.h"
#include "kernels/sync.h"

namespace topoccl {

namespace {

Settings currentSettings() {
  Settings settings = readSettings();
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

// This rank's member of a communicator that was split from one with these settings and device.
std::unique_ptr<Member> memberOf(const SplitPart& part, const Settings& settings, int device,
                                 const CommConfig& config, const Member::AbortFlag& abort) {
  auto bootstrap = connectBootstrap(part.id, part.ranks, part.rank, settings, abort.get());
  return std::make_unique<Member>(std::move(bootstrap), abort, settings, config, device);
}

}  // namespace

void Communicator::initRank(Communicator** out, int ranks, const void* id128, int rank,
                            const CommConfig& config) {
  UniqueId id;
  std::memcpy(id.bytes.data(), id128, id.bytes.size());
  const Member::AbortFlag abort = newAbortFlag();
  auto init = [=] {
    make(out, config.blocking != 0, abort, [=] {
      const Settings settings = currentSettings();
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
  try {
    member_ = makeMember();
    if (!compareExchange(&life_, kPending, kLive)) {  // destroyed or aborted meanwhile
      member_->leave();
      member_.reset();
    }
  } catch (const Error& error) {
    setUpError_ = error.code();
    setLastError(error.what());
    compareExchange(&life_, kPending, kFailed);
  } catch (const std::exception& error) {
    setUpError_ = Code::SystemError;
    setLastError(error.what());
    compareExchange(&life_, kPending, kFailed);
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
  group::start();
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
  group::end();
}

void Communicator::split(Communicator** out, int color, int key, const CommConfig* config) {
  const CommConfig wanted = config != nullptr ? *config : [this] {
    const Query query(*this);
    return member_->config();
  }();
  const AbortFlag abort = newAbortFlag();
  auto run = [=, this] {
    *out = nullptr;
    if (wanted.blocking == 0) return splitInBackground(out, color, key, wanted, abort);
    const Operation operation(*this);
    const SplitPart part = joinSplit(operation.member(), color, key);
    if (part.ranks == 0) return;
    const Member& parent = operation.member();
    make(out, true, abort, [&] { return memberOf(part, parent.settings(), parent.device(), wanted, abort); });
  };
  if (group::open()) return group::addInit(std::move(run), abort, this);
  run();
}

// A split in the background, as long as it needs the communicator: keeps destroy and abort waiting.
class Communicator::JoiningSplit {
 public:
  explicit JoiningSplit(Communicator& parent) : parent_(&parent) {
    fetchAdd(&parent.joining_, 1U);
    fullFence();
    if (parent.live()) return;
    fetchAdd(&parent.joining_, ~0U);
    parent.refuse();
  }
  ~JoiningSplit() { fetchAdd(&parent_->joining_, ~0U); }
  JoiningSplit(const JoiningSplit&) = delete;
  JoiningSplit& operator=(const JoiningSplit&) = delete;
  Member& parent() const { return *parent_->member_; }

 private:
  Communicator* parent_;
};

void Communicator::splitInBackground(Communicator** out, int color, int key, const CommConfig& config,
                                     const AbortFlag& abort) {
  auto joining = std::make_shared<JoiningSplit>(*this);  // std::function wants copyable captures
  fetchAdd(&splitting_, 1U);
  auto makeMember = [=, this]() mutable {
    struct Done {
      uint32_t* splitting;
      ~Done() { fetchAdd(splitting, ~0U); }
    } const done{&splitting_};
    const SplitPart part = joinSplit(joining->parent(), color, key);
    const Settings settings = joining->parent().settings();
    const int device = joining->parent().device();
    joining.reset();
    if (part.ranks == 0) return std::unique_ptr<Member>();
    return memberOf(part, settings, device, config, abort);
  };
  joining.reset();
  try {
    if (color != kNoColor) return make(out, false, abort, std::move(makeMember));
    startServiceThread("topoccl-split", std::move(makeMember));
  } catch (const Error& error) {
    if (error.code() != Code::InProgress) fetchAdd(&splitting_, ~0U);  // no thread to do it
    throw;
  }
  throw Error(Code::InProgress, "the split is in progress");
}

// Its thread notices within a wait's slice.
bool Communicator::endSetUp() {
  if (!compareExchange(&life_, kPending, kClosing) && !compareExchange(&life_, kFailed, kClosing))
    return false;
  abort_->store(true);
  while (loadAcquire(&settingUp_) != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  retire();
  return true;
}

}  // namespace topoccl
