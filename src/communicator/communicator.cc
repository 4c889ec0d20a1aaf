#include "communicator/communicator.h"

#include <sched.h>

#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "algorithms/catalog.h"
#include "algorithms/words.h"
#include "base/fork_safety.h"
#include "bootstrap/bootstrap.h"
#include "communicator/call.h"
#include "communicator/check_call.h"
#include "communicator/group.h"
#include "communicator/handle_pool.h"
#include "communicator/host_stream.h"
#include "communicator/member.h"
#include "communicator/query.h"
#include "device/host.h"
#include "kernels/sync.h"
#include "schedule/goal.h"

namespace topoccl {

namespace {

// How often its end looks whether a communicator's splits can do without it.
constexpr std::chrono::milliseconds kJoinPoll{1};

// An abort succeeds without memory too.
const Error kAborted(Code::InvalidUsage, "the communicator was aborted");  // made while there is memory

Error abortedBy(int rank) noexcept {
  try {
    return {Code::InvalidUsage, concat("rank ", rank, " aborted the communicator")};
  } catch (const std::bad_alloc&) {
    return kAborted;
  }
}

const ForkHook kHook =
    ForkHook::holding<HandlePool::mutex>(ForkHook::Level::Outer, [] { HandlePool::instance().forget(); });

}  // namespace

void Communicator::refuseDead() {
  throw Error(Code::InvalidArgument, "comm was destroyed or aborted before");
}

bool Communicator::isOne(const void* handle) {
  constexpr uintptr_t kPageBytes = 4096;  // the first one is nobody's: handles of streams are numbers in it
  const auto address = reinterpret_cast<uintptr_t>(handle);
  return address >= kPageBytes && address % alignof(Communicator) == 0 &&
         loadRelaxed(&static_cast<const Communicator*>(handle)->magic_) == kMagic;
}

void Communicator::throwIfForked() const {
  if (loadRelaxed(&generation_) == processGeneration()) return;
  refuseAfterFork("comm is", process_,
                  "make a communicator here with ncclCommInitRank, or start the program anew (exec)");
}

void Communicator::refuse(uint32_t life) const {
  switch (life) {
    case kPending:
      throw Error(Code::InvalidArgument,
                  "comm is still being set up: wait until ncclCommGetAsyncError stores ncclSuccess");
    case kFailed:
      throw Error(setUpError_->code(),
                  concat("comm could not be set up; destroy or abort it: ", setUpError_->what()));
    default:
      refuseDead();
  }
}

void Communicator::enter(uint32_t* count) const {
  fetchAdd(count, 1U);
  fullFence();
  const uint32_t life = loadAcquire(&life_);
  if (life == kLive) return;
  fetchAdd(count, ~0U);
  refuse(life);
}

Communicator::Operation::Operation(Communicator& communicator) : communicator_(&communicator) {
  storeRelaxed(&communicator.operation_, 1U);
  fullFence();
  const uint32_t life = loadAcquire(&communicator.life_);
  if (life == kLive) return;
  storeRelease(&communicator.operation_, 0U);
  communicator.refuse(life);
}

Communicator::Operation::~Operation() {
  if (communicator_ != nullptr) storeRelease(&communicator_->operation_, 0U);
}

bool Communicator::dead() const {
  const uint32_t life = loadAcquire(&life_);
  return life == kDead || life == kAbandoned;
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
  const uint32_t life = loadAcquire(&life_);
  if (life == kPending) return Code::InProgress;
  const auto told = [](const Error& error) {
    setLastError(error.what());
    return error.code();
  };
  if (life == kFailed) return told(*setUpError_);
  const Query query(*this);
  if (const std::optional<Error> error = member_->asyncError()) return told(*error);
  const TaskOrder* const own = loadAcquire(&ownOrder_);
  const bool running = (own != nullptr && !own->empty()) ||
                       (member_->config().blocking == 0 && member_->finalized() && !idle());
  return running || loadAcquire(&splitting_) != 0 ? Code::InProgress : Code::Success;
}

bool Communicator::idle() const {
  return tasks_.empty() && loadAcquire(&joining_) == 0;
}

void Communicator::finalize() {
  const Operation operation(*this);
  member_->finalize();
  if (member_->config().blocking == 0 && !idle())
    throw Error(Code::InProgress, "what was issued is in progress");
  tasks_.drain();
  while (loadAcquire(&joining_) != 0) std::this_thread::sleep_for(kJoinPoll);
  member_->throwIfFailed();
}

void Communicator::destroy() {
  if (compareExchange(&life_, kLive, kClosing)) return end(false);
  if (!endSetUp()) refuseDead();
}

void Communicator::abort() {
  if (compareExchange(&life_, kLive, kClosing)) return end(true);
  if (endSetUp()) return;
  // Another thread's destroy may be waiting for a call that only an abort ends.
  fetchAdd(&queries_, 1U);
  fullFence();
  const bool closing = loadAcquire(&life_) == kClosing;
  if (closing) {
    member_->requestEnd();
    Task::drop(*this);
  }
  fetchAdd(&queries_, ~0U);
  if (!closing) refuseDead();
}

void Communicator::end(bool aborting) {
  fullFence();
  while (loadAcquire(&settingUp_) != 0) ::sched_yield();  // its last line
  if (aborting) member_->requestEnd();
  while (loadAcquire(&operation_) != 0) {
    if (member_->abortRequested()) Task::drop(*this);  // its own may wait for another's
    ::sched_yield();
  }
  while (loadAcquire(&joining_) != 0) std::this_thread::sleep_for(kJoinPoll);
  if (member_->abortRequested()) Task::drop(*this);
  tasks_.drain();  // a later abort() drops what has not begun
  if (aborting) member_->failByAbort(abortedBy(member_->rank()));
  member_->leave();
  retire();
}

void Communicator::retire() {
  storeRelease(&life_, kDead);
  fullFence();
  while (loadAcquire(&queries_) != 0) ::sched_yield();
  member_.reset();
  storeRelease(&ownOrder_, static_cast<const TaskOrder*>(nullptr));
  own_.reset();
  HandlePool::instance().giveBack(this);
}

void Communicator::collective(CollectiveCall call, int op, const void* stream) {
  Operation operation(*this);
  if (hasRoot(call.collective)) checkRank("root", call.root, member_->ranks());
  if (reduces(call.collective)) call.reduction = member_->operators().reduction(op, call.type);
  checkSize(call, member_->ranks());
  checkBuffers(call, member_->rank(), member_->ranks());
  issue(std::move(operation), call, stream);
}

void Communicator::peerCall(const PeerCall& call, const void* stream) {
  Operation operation(*this);
  checkRank("peer", call.peer, member_->ranks());
  issue(std::move(operation), call, stream);
}

template <class Call>
void Communicator::issue(Operation&& mine, const Call& call, const void* stream) {
  std::optional<Operation> operation(std::move(mine));
  const bool inBackground = stream == nullptr && member_->config().blocking == 0;
  if (stream == nullptr && !inBackground && tasks_.empty() && !group::open()) return member_->run(call);
  IssuedCall issued{this, call, nullptr, inBackground};
  if (stream != nullptr)
    issued.stream = streamOf(stream);
  else if (inBackground)
    issued.stream = ownStream();
  operation.reset();  // a task has its own
  group::addCall(std::move(issued));
}

bool Communicator::runTogether(std::span<const IssuedCall> calls) {
  const Operation operation(*this);
  if (!tasks_.empty()) return false;
  member_->run(calls, *this);
  return true;
}

std::shared_ptr<HostStream> Communicator::ownStream() {
  if (!own_) {
    own_ = HostStream::start();
    storeRelease(&ownOrder_, static_cast<const TaskOrder*>(&own_->order()));
  }
  return own_;
}

int Communicator::createScaledSum(DataType type, const void* scalar, bool deferred) {
  const Query query(*this);
  return member_->operators().create(type, scalar, deferred);
}

void Communicator::destroyOperator(int op) {
  const Query query(*this);
  member_->operators().destroy(op);
}

void* Communicator::registerBuffer(const void* buffer, size_t bytes) {
  const Query query(*this);
  return member_->registrations().add(buffer, bytes);
}

void Communicator::deregisterBuffer(void* handle) {
  const Query query(*this);
  member_->registrations().remove(handle);
}

CallPlan Communicator::explain(const std::string& collective, uint64_t count, DataType type) const {
  const Query query(*this);
  if (lower(collective) == "send_recv" || lower(collective) == "sendrecv") {
    return member_->explain(PeerCall{true, (member_->rank() + 1) % member_->ranks(), nullptr, count, type});
  }
  const std::optional<Collective> known = collectiveNamed(collective);
  if (!known)
    throw Error(Code::InvalidArgument, concat("collective is \"", collective, "\"; it must be one of ",
                                              collectiveNames(), ", send_recv"));
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
  if (!Communicator::isOne(handle))
    throw Error(Code::InvalidArgument,
                concat("comm is ", handle, ", which is not a communicator of this library"));
  auto* const communicator = static_cast<Communicator*>(const_cast<void*>(handle));
  communicator->throwIfForked();
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
void refuseInGroupForMemory() noexcept {
  group::refuseForMemory();
}
void groupStart() {
  group::start();
}
void groupEnd() {
  group::end();
}
GroupScope::~GroupScope() {
  if (ended_) return;
  refuseInGroupForMemory();  // whatever it was: of a group around this one, who refused tells the reason
  try {
    groupEnd();
  } catch (const std::exception&) {  // the refusal
  }
}

void GroupScope::end() {
  ended_ = true;
  groupEnd();
}

void* memAlloc(size_t bytes) {
  return allocateHost(bytes);
}
void memFree(void* memory) {
  freeHost(memory);
}

}  // namespace topoccl
