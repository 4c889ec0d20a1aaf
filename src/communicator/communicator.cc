#include "communicator/communicator.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "algorithms/catalog.h"
#include "bootstrap/bootstrap.h"
#include "communicator/call.h"
#include "communicator/group.h"
#include "communicator/member.h"
#include "communicator/split.h"
#include "device/host.h"
#include "device/local_devices.h"
#include "kernels/sync.h"
#include "schedule/goal.h"

namespace topoccl {

// All handles that ever were; see communicator.h.
class HandlePool {
 public:
  static HandlePool& instance() {
    static auto* const pool = new HandlePool;  // outlives every user, also at exit
    return *pool;
  }

  Communicator* take(std::unique_ptr<Member> member) {
    const std::scoped_lock lock(mutex_);
    if (free_.size() <= kDeadHandles) free_.push_front(&all_.emplace_back());
    Communicator* const handle = free_.front();
    free_.pop_front();
    handle->member_ = std::move(member);
    storeRelease(&handle->life_, Communicator::kLive);
    return handle;
  }

  void giveBack(Communicator* handle) {
    const std::scoped_lock lock(mutex_);
    free_.push_back(handle);
  }

 private:
  // So many communicators die before a handle is used again: a stale one is recognised until then.
  static constexpr size_t kDeadHandles = 4096;

  std::mutex mutex_;
  std::deque<Communicator> all_;
  std::deque<Communicator*> free_;  // new ones in front, the dead in order of death
};

void Communicator::refuseDead() {
  throw Error(Code::InvalidArgument, "comm was destroyed or aborted before");
}

// A query inside a communicator, of any thread: keeps destroy and abort from pulling it away.
class Communicator::Query {
 public:
  explicit Query(const Communicator& communicator) : queries_(const_cast<uint32_t*>(&communicator.queries_)) {
    fetchAdd(queries_, 1U);
    fullFence();
    if (communicator.live()) return;
    fetchAdd(queries_, ~0U);
    refuseDead();
  }
  ~Query() { fetchAdd(queries_, ~0U); }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

 private:
  uint32_t* queries_;
};

Communicator::Operation::Operation(Communicator& communicator) : communicator_(&communicator) {
  storeRelaxed(&communicator.operation_, 1U);
  fullFence();
  if (communicator.live()) return;
  storeRelease(&communicator.operation_, 0U);
  refuseDead();
}

Communicator::Operation::~Operation() {
  if (communicator_ != nullptr) storeRelease(&communicator_->operation_, 0U);
}

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

}  // namespace

void Communicator::initRank(Communicator** out, int ranks, const void* id128, int rank,
                            const CommConfig& config) {
  UniqueId id;
  std::memcpy(id.bytes.data(), id128, id.bytes.size());
  const Member::AbortFlag abort = newAbortFlag();
  auto init = [=] {
    const Settings settings = currentSettings();
    auto bootstrap = connectAs(id, ranks, rank, settings, abort.get());
    *out = HandlePool::instance().take(
        std::make_unique<Member>(std::move(bootstrap), abort, settings, config, -1));
  };
  if (group::open()) return group::addInit(std::move(init), abort);
  init();
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
  std::optional<CommConfig> wanted;
  if (config != nullptr) wanted = *config;
  const Member::AbortFlag abort = newAbortFlag();
  auto run = [=, this] {
    const Operation operation(*this);
    Member& parent = operation.member();
    *out = nullptr;
    const SplitPart part = joinSplit(parent, color, key);
    if (part.ranks == 0) return;
    auto bootstrap = connectBootstrap(part.id, part.ranks, part.rank, parent.settings(), abort.get());
    *out = HandlePool::instance().take(std::make_unique<Member>(
        std::move(bootstrap), abort, parent.settings(), wanted.value_or(parent.config()), parent.device()));
  };
  if (group::open()) return group::addInit(std::move(run), abort, this);
  run();
}

bool Communicator::dead() const {
  return loadAcquire(&life_) == kDead;
}

bool Communicator::live() const {
  return loadAcquire(&life_) == kLive;
}

int Communicator::rank() const {
  const Query query(*this);
  return member_->rank();
}

int Communicator::ranks() const {
  const Query query(*this);
  return member_->ranks();
}

int Communicator::device() const {
  const Query query(*this);
  return member_->device();
}

Code Communicator::asyncError() const {
  const Query query(*this);
  return member_->asyncError();
}

void Communicator::finalize() {
  const Operation operation(*this);
  member_->finalize();
}

void Communicator::destroy() {
  if (!compareExchange(&life_, kLive, kClosing)) refuseDead();
  end(false);
}

void Communicator::abort() {
  if (compareExchange(&life_, kLive, kClosing)) return end(true);
  // Another thread's destroy may be waiting for a call that only an abort ends.
  fetchAdd(&queries_, 1U);
  fullFence();
  const bool closing = loadAcquire(&life_) == kClosing;
  if (closing) member_->requestAbort();
  fetchAdd(&queries_, ~0U);
  if (!closing) refuseDead();
}

void Communicator::end(bool aborting) {
  fullFence();
  if (aborting) member_->requestAbort();
  while (loadAcquire(&operation_) != 0) ::sched_yield();
  if (aborting)
    member_->fail(Code::InvalidUsage, concat("rank ", member_->rank(), " aborted the communicator"));
  member_->leave();
  storeRelease(&life_, kDead);
  fullFence();
  while (loadAcquire(&queries_) != 0) ::sched_yield();
  member_.reset();
  HandlePool::instance().giveBack(this);
}

namespace {

void checkStream(const void* stream) {
  if (stream != nullptr)
    throw Error(Code::InvalidArgument,
                concat("stream is ", stream, "; a rank on a CPU has no streams, it must be NULL"));
}

void checkRank(const char* argument, int rank, int ranks) {
  if (rank < 0 || rank >= ranks)
    throw Error(Code::InvalidArgument, concat(argument, " is ", rank, "; it must be in 0..", ranks - 1));
}

// A buffer as bytes; no bytes where this rank has none.
struct Span {
  const char* argument;
  uintptr_t begin;
  uint64_t bytes;

  bool overlaps(const Span& other) const {
    return bytes != 0 && other.bytes != 0 && begin < other.begin + other.bytes && other.begin < begin + bytes;
  }
};

// Throws where a buffer is missing that the rank must have.
Span spanOf(const char* argument, const void* buffer, const CollectiveCall& call, Presence presence,
            int ranks) {
  const uint64_t blocks = presence == Presence::All ? blocksOf(call.collective, ranks) : 1;
  const uint64_t count = presence == Presence::None ? 0 : call.count;
  if (buffer == nullptr && count > 0)
    throw Error(Code::InvalidArgument,
                concat(argument, " is NULL although count is ", count, "; only count 0 allows NULL"));
  return {argument, reinterpret_cast<uintptr_t>(buffer), count * blocks * elementBytes(call.type)};
}

void checkSize(const CollectiveCall& call, int ranks) {
  const uint64_t most = SIZE_MAX / elementBytes(call.type) / blocksOf(call.collective, ranks);
  if (call.count > most)
    throw Error(Code::InvalidArgument,
                concat("count is ", call.count, "; for ", ranks, " ranks and ", elementBytes(call.type),
                       " bytes an element it must be at most ", most));
}

// Buffers may be the same memory, block by block, but not overlap in any other way.
void checkBuffers(const CollectiveCall& call, int rank, int ranks) {
  const bool isRoot = rank == call.root;
  const Presence in = presenceOf(call.collective, Place::In, isRoot);
  const Presence out = presenceOf(call.collective, Place::Out, isRoot);
  const Span send = spanOf("sendbuff", call.send, call, in, ranks);
  const Span receive = spanOf("recvbuff", call.receive, call, out, ranks);
  if (!send.overlaps(receive)) return;
  const uint64_t own = static_cast<uint64_t>(rank) * call.count * elementBytes(call.type);
  const uintptr_t sendAt = send.begin + (in == Presence::All && out == Presence::OwnBlock ? own : 0);
  const uintptr_t receiveAt = receive.begin + (out == Presence::All && in == Presence::OwnBlock ? own : 0);
  const bool inPlace = allowsInPlace(call.collective);
  if (sendAt == receiveAt && inPlace) return;
  throw Error(
      Code::InvalidArgument,
      concat("sendbuff ", call.send, " and recvbuff ", call.receive, " overlap; ", name(call.collective),
             inPlace ? " is in place only where both are the same data" : " has no in-place form"));
}

}  // namespace

void Communicator::collective(CollectiveCall call, int op, const void* stream) {
  const Operation operation(*this);
  checkStream(stream);
  if (hasRoot(call.collective)) checkRank("root", call.root, member_->ranks());
  if (reduces(call.collective)) call.reduction = member_->operators().reduction(op, call.type);
  checkSize(call, member_->ranks());
  checkBuffers(call, member_->rank(), member_->ranks());
  if (group::open()) return group::addCall(*this, call);
  member_->run(call);
}

void Communicator::peerCall(const PeerCall& call, const void* stream) {
  const Operation operation(*this);
  checkStream(stream);
  checkRank("peer", call.peer, member_->ranks());
  if (group::open()) return group::addCall(*this, call);
  member_->run(call);
}

int Communicator::createScaledSum(DataType type, const void* scalar, bool deferred) {
  const Operation operation(*this);
  return member_->operators().create(type, scalar, deferred);
}

void Communicator::destroyOperator(int op) {
  const Operation operation(*this);
  member_->operators().destroy(op);
}

void* Communicator::registerBuffer(const void* buffer, size_t bytes) {
  const Operation operation(*this);
  return member_->registrations().add(buffer, bytes);
}

void Communicator::deregisterBuffer(void* handle) {
  const Operation operation(*this);
  member_->registrations().remove(handle);
}

CallPlan Communicator::explain(const std::string& collective, uint64_t count, DataType type) const {
  const Query query(*this);
  if (collective == "send_recv") {
    return member_->explain(PeerCall{true, (member_->rank() + 1) % member_->ranks(), nullptr, count, type});
  }
  const std::optional<Collective> known = collectiveNamed(collective);
  if (!known)
    throw Error(Code::InvalidArgument, concat("collective is \"", collective,
                                              "\"; it must be all_reduce, broadcast, reduce, all_gather, "
                                              "reduce_scatter, gather, scatter, all_to_all or send_recv"));
  CollectiveCall call;
  call.collective = *known;
  call.count = count;
  call.type = type;
  call.root = hasRoot(*known) ? 0 : -1;
  checkSize(call, member_->ranks());
  return member_->explain(call);
}

Communicator* checkedCommunicator(const void* handle) {
  if (handle == nullptr) throw Error(Code::InvalidArgument, "comm is NULL");
  auto* const communicator = static_cast<Communicator*>(const_cast<void*>(handle));
  if (communicator->dead()) Communicator::refuseDead();
  return communicator;
}

void makeUniqueId(void* bytes128) {
  const UniqueId id = getUniqueId(readSettings());
  std::memcpy(bytes128, id.bytes.data(), id.bytes.size());
}

void refuseInGroup(const Error& error) {
  group::refuse(error);
}
void groupStart() {
  group::start();
}
void groupEnd() {
  group::end();
}
void* memAlloc(size_t bytes) {
  return allocateHost(bytes);
}
void memFree(void* memory) {
  freeHost(memory);
}

}  // namespace topoccl
