#include "communicator/member.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "algorithms/catalog.h"
#include "base/logging.h"
#include "kernels/mix.h"
#include "kernels/sync.h"

namespace topoccl {

namespace {

// Looks before a waiter yields when every rank has a core, and yields before it sleeps. Chosen, not tuned:
// some 100 us of spinning, more than any message between cores takes.
constexpr uint32_t kSpins = 2000;
constexpr uint32_t kYields = 10;
// What minCTAs can ask for: as many channels as NCCL has.
constexpr int kMostChannels = 64;

RangeTable loadTable(const Settings& settings) {
  if (settings.rangeTable.empty()) return RangeTable::builtIn();
  // A table has blanks between its fields; a path without any is a path.
  const bool isText = settings.rangeTable.find_first_of(" \t\n") != std::string::npos;
  const bool isPath = !isText || settings.rangeTable.front() == '/' || settings.rangeTable.front() == '.';
  return isPath ? RangeTable::load(settings.rangeTable) : RangeTable::parse(settings.rangeTable);
}

SlotWishes slotWishes(const Settings& settings) {
  return {static_cast<uint32_t>(settings.slots), static_cast<uint64_t>(settings.slotBytes),
          static_cast<uint64_t>(settings.bufferBytes)};
}

uint64_t packPoison(int nodeRank, Code code) {
  return static_cast<uint64_t>(nodeRank + 1) | static_cast<uint64_t>(code) << 32;
}

}  // namespace

Member::Member(std::unique_ptr<Bootstrap> bootstrap, AbortFlag abort, const Settings& settings,
               const CommConfig& config, int device)
    : settings_(settings),
      abort_(std::move(abort)),
      bootstrap_(std::move(bootstrap)),
      minChannels_(config.minChannels),
      maxChannels_(config.maxChannels),
      table_(loadTable(settings)),
      filter_(parseFilter(Collective::AllReduce, settings.algorithms, settings.protocols)),
      node_(setUpNode(*bootstrap_, settings_, config, table_.hash(), abort_.get())) {
  nodeRank_ = node_.places[static_cast<size_t>(rank())].nodeRank;
  device_ = device >= 0 ? device : nodeRank_;
  connector_ = std::make_unique<NodeConnector>(node_.memory, rank(), node_.places);
  setWaitPolicy();
  log(Level::Info, Subsystem::Init, config.name.empty() ? "comm" : config.name, " rank ", rank(), " nranks ",
      ranks(), " node rank ", nodeRank_, " cores ", node_.cores, " - Init COMPLETE");
}

Member::~Member() = default;

void Member::setWaitPolicy() {
  const auto nodeRanks = static_cast<int>(node_.nodeRanks.size());
  const bool coreEach = node_.cores == 0 || nodeRanks <= node_.cores;
  waitPolicy_.spins = coreEach ? kSpins : 0;
  if (settings_.spin >= 0)
    waitPolicy_.spins = static_cast<uint32_t>(std::min<int64_t>(settings_.spin, UINT32_MAX));
  waitPolicy_.yields = kYields;
}

// ---- works ----

CollectiveWork Member::issue(const CollectiveCall& call) {
  throwIfUnusable();
  return {*this, call, ++calls_};
}

void Member::run(const CollectiveCall& call) {
  CollectiveWork work = issue(call);
  Work* const works[] = {&work};
  Doorbell* const bells[] = {doorbell()};
  WorkQueue queue;
  queue.works = works;
  waiter_.reset(waitPolicy_, bells, 1);
  drive({&queue, 1}, waiter_);
  if (queue.failed) throwIfFailed();
}

Choice Member::choose(const CollectiveCall& call) const {
  Choice choice = table_.pick(call.collective, ranks(), call.count * elementBytes(call.type), filter_);
  if (settings_.channels > 0) choice.channels = static_cast<int>(settings_.channels);
  if (maxChannels_ > 0) choice.channels = std::min(choice.channels, maxChannels_);
  choice.channels = std::max(choice.channels, std::min(minChannels_, kMostChannels));
  return choice;
}

OpenSchedule* Member::open(const CollectiveCall& call) {
  const uint64_t bytes = call.count * elementBytes(call.type);
  if (recent_.schedule != nullptr && recent_.collective == call.collective && recent_.root == call.root &&
      recent_.bytes == bytes)
    return recent_.schedule;
  OpenSchedule* const schedule = open(call, choose(call));
  if (schedule != nullptr) recent_ = {call.collective, call.root, bytes, schedule};
  return schedule;
}

OpenSchedule* Member::open(const CollectiveCall& call, const Choice& choice) {
  std::unique_ptr<OpenSchedule>& entry =
      open_[{call.collective, call.root, choice.algorithm, choice.protocol, choice.channels}];
  if (!entry) {
    auto [schedule, slots] = plan(choice);
    const uint64_t family = mix(static_cast<uint64_t>(call.collective), static_cast<uint64_t>(call.root));
    entry = std::make_unique<OpenSchedule>(std::move(schedule), family, choice, slots);
    log(Level::Info, Subsystem::Coll, "rank ", rank(), " opens ", name(choice.algorithm), '/',
        name(choice.protocol), '/', choice.channels, " with ", slots.slots, " slots of ", slots.slotBytes,
        " bytes");
  }
  return entry->connect(*connector_) ? entry.get() : nullptr;
}

Member::Planned Member::plan(const Choice& choice) const {
  const AlgorithmRow& algorithm = row(choice.algorithm);
  Schedule schedule = algorithm.emit(flatLayout(ranks(), choice.channels), rank());
  const uint32_t sends = algorithm.sendConnections(ranks()) * static_cast<uint32_t>(choice.channels);
  const SlotPlan slots = planSlots(schedule, sends, slotWishes(settings_));
  return {std::move(schedule), slots};
}

CallPlan Member::explain(const CollectiveCall& call) const {
  const Choice choice = choose(call);
  const auto [schedule, slots] = plan(choice);
  CallPlan result{name(choice.algorithm), name(choice.protocol),         "",
                  choice.channels,        static_cast<int>(slots.slots), slots.slotBytes};
  for (const char* transport : {"in-process", "shm"}) {
    const bool used =
        std::any_of(schedule.connections.begin(), schedule.connections.end(), [&](const Connection& c) {
          return std::string(connector_->transportTo(c.from == rank() ? c.readers.front() : c.from)) ==
                 transport;
        });
    if (used && !result.transport.empty()) result.transport += '+';
    if (used) result.transport += transport;
  }
  if (result.transport.empty()) result.transport = "none";
  return result;
}

unsigned char* Member::scratch(uint64_t bytes) {
  if (scratch_.size() < bytes + kGranuleBytes) scratch_.resize(bytes + kGranuleBytes);
  const auto address = reinterpret_cast<uintptr_t>(scratch_.data());
  return scratch_.data() + (kGranuleBytes - address % kGranuleBytes) % kGranuleBytes;
}

void Member::throwIfUnusable() const {
  throwIfFailed();
  if (finalized_) throw Error(Code::InvalidUsage, "the communicator was finalized");
}

// ---- failures ----

bool Member::mustGiveUp(const CollectiveWork& work, const BoundSchedule* running) {
  if (abort_->load()) {
    fail(Code::InvalidUsage,
         concat("rank ", rank(), ": the communicator was aborted during ", describe(work.descriptor())));
    return true;
  }
  if (mismatched(work) || peerFailed() || peerLeft(work)) return true;
  if (settings_.collectiveTimeout.count() > 0 && work.stuck(running, settings_.collectiveTimeout)) {
    fail(Code::RemoteError, concat("rank ", rank(), ": ", describe(work.descriptor()), " did not move for ",
                                   settings_.collectiveTimeout.count(), " ms (TOPOCCL_COLLECTIVE_TIMEOUT); ",
                                   waitText(running)));
    return true;
  }
  return false;
}

// What a work waits for, in words.
std::string Member::waitText(const BoundSchedule* running) const {
  if (running == nullptr) return "waiting for a peer to begin the call";
  const BoundSchedule::Wait wait = running->waiting();
  const Connection& connection = running->schedule().connections[wait.connection];
  if (wait.lane == UINT32_MAX)
    return concat("waiting for rank ", connection.readers.front(), " to stop reading");
  std::string text = concat("lane ", wait.lane, " step ", wait.step, " piece ", wait.piece, " waits for ");
  if (wait.place == Place::Receive) return text + concat("data from rank ", connection.from);
  return text + concat("rank ", connection.readers.front(), " to free a slot");
}

bool Member::peerFailed() {
  const uint64_t poison = loadAcquire(node_.memory->poison());
  const std::optional<PeerFailure> reported = reportedFailure();
  if (reported) {
    fail(Code::RemoteError,
         concat("rank ", rank(), ": rank ", reported->rank, " failed: ", reported->reason));
    return true;
  }
  if (poison == 0) return false;
  const auto culprit = static_cast<uint32_t>(poison) - 1;
  const auto peer = culprit < node_.nodeRanks.size() ? node_.nodeRanks[culprit] : -1;
  fail(static_cast<Code>(poison >> 32) == Code::InvalidUsage ? Code::RemoteError
                                                             : static_cast<Code>(poison >> 32),
       concat("rank ", rank(), ": rank ", peer, " gave up on this communicator"));
  return true;
}

// A peer that said goodbye without having begun this call will never come.
bool Member::peerLeft(const CollectiveWork& work) {
  for (size_t peer = 0; peer < node_.nodeRanks.size(); ++peer) {
    const auto nodeRank = static_cast<int>(peer);
    if (loadAcquire(&node_.memory->line(nodeRank).touch.left) == 0) continue;
    if (node_.memory->posted(nodeRank).number >= work.descriptor().number) continue;
    fail(Code::RemoteError, concat("rank ", rank(), ": rank ", node_.nodeRanks[peer],
                                   " destroyed its communicator before ", describe(work.descriptor())));
    return true;
  }
  return false;
}

std::optional<PeerFailure> Member::reportedFailure() const {
  const std::scoped_lock lock(bootstrapMutex_);
  return bootstrap_->failure();
}

Code Member::asyncError() const {
  const Code own = failure().code;
  if (own != Code::Success) return own;
  const bool peers = loadAcquire(node_.memory->poison()) != 0 || reportedFailure().has_value();
  return peers ? Code::RemoteError : Code::Success;
}

// Peers in the same collective by number must have called the same; their boards say what they called.
bool Member::mismatched(const CollectiveWork& work) {
  const CallDescriptor& mine = work.descriptor();
  for (size_t peer = 0; peer < node_.nodeRanks.size(); ++peer) {
    const CallDescriptor theirs = node_.memory->posted(static_cast<int>(peer));
    if (theirs.number != mine.number || theirs == mine) continue;
    fail(Code::InvalidUsage, concat("ranks disagree: rank ", rank(), " called ", describe(mine), "; rank ",
                                    node_.nodeRanks[peer], " called ", describe(theirs)));
    return true;
  }
  return false;
}

void Member::slotMismatch(const CollectiveWork& work, const BoundSchedule& running) {
  const MachineFailure& failure = running.failure();
  if (mismatched(work) || (failure.poisoned && peerFailed())) return;
  const Connection& connection = running.schedule().connections[failure.connection];
  fail(Code::InternalError,
       concat("rank ", rank(), ": ", describe(work.descriptor()), ": rank ", connection.from, " sent chunk ",
              failure.found.chunk, " (", failure.found.bytes, " bytes) where chunk ", failure.expectedChunk,
              " (", failure.expectedBytes, " bytes) was expected",
              failure.found.call == running.call() ? "" : ", of another call"));
}

void Member::fail(Code code, const std::string& message) {
  // First of all: peers must learn of it, whatever happens to this thread.
  const bool first = exchange(&failing_, 1U) == 0;
  if (!first) return;
  compareExchange(node_.memory->poison(), uint64_t{0}, packPoison(nodeRank_, code));
  fullFence();  // before the look at who touches
  wakeNode();
  {
    const std::scoped_lock lock(failureMutex_);
    failure_ = {code, message};
    storeRelease(&failed_, 1U);
  }
  waitUntilUntouched();
  log(Level::Warn, Subsystem::Coll, message);
  const std::scoped_lock lock(bootstrapMutex_);
  bootstrap_->reportAbort(message);
}

void Member::wakeNode() const {
  for (size_t peer = 0; peer < node_.nodeRanks.size(); ++peer)
    wake(node_.memory->line(static_cast<int>(peer)).doorbell);
}

// Peers of this process may be in the middle of a piece that they read from or write to this rank's buffers.
// The poison is set, so none begins another.
void Member::waitUntilUntouched() const {
  for (size_t peer = 0; peer < node_.nodeRanks.size(); ++peer) {
    if (!node_.places[static_cast<size_t>(node_.nodeRanks[peer])].sameProcess) continue;
    if (static_cast<int>(peer) == nodeRank_) continue;
    while (loadAcquire(&node_.memory->line(static_cast<int>(peer)).touch.touching) != 0) ::sched_yield();
  }
}

Member::Failure Member::failure() const {
  const std::scoped_lock lock(failureMutex_);
  return failure_;
}

void Member::throwIfFailed() const {
  if (loadAcquire(&failed_) == 0) return;
  const Failure failure = this->failure();
  if (failure.code != Code::Success) throw Error(failure.code, failure.message);
}

// ---- life ----

void Member::finalize() {
  throwIfFailed();
  if (finalized_) throw Error(Code::InvalidUsage, "the communicator was finalized before");
  finalized_ = true;
}

void Member::requestAbort() {
  abort_->store(true);
  wake(line().doorbell);
}

void Member::leave() {
  storeRelease(&line().touch.left, 1U);
  wakeNode();
  const std::scoped_lock lock(bootstrapMutex_);
  bootstrap_->leave();
}

}  // namespace topoccl
