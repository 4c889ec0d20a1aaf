#include "communicator/task.h"

#include <algorithm>
#include <exception>
#include <map>
#include <utility>

#include "communicator/host_stream.h"
#include "communicator/member.h"

namespace topoccl {

Task::Task(std::vector<IssuedCall> calls) : calls_(std::move(calls)) {
  for (const IssuedCall& call : calls_) {
    if (call.stream == nullptr)
      onCaller_ = true;
    else if (std::find(streams_.begin(), streams_.end(), call.stream) == streams_.end())
      streams_.push_back(call.stream);
    if (partOf(*call.communicator) != nullptr) continue;
    Part& part = parts_.emplace_back();
    part.communicator = call.communicator;
    part.operation.emplace(*call.communicator);
    part.member = &part.operation->member();
    part.member->throwIfUnusable();
    part.memory = part.member->memory();
  }
}

Task::Part* Task::partOf(const Communicator& communicator) {
  const auto found = std::find_if(parts_.begin(), parts_.end(),
                                  [&](const Part& part) { return part.communicator == &communicator; });
  return found == parts_.end() ? nullptr : &*found;
}

bool Task::inBackground() const {
  return !onCaller_ && std::any_of(parts_.begin(), parts_.end(),
                                   [](const Part& part) { return part.member->config().blocking == 0; });
}

void Task::issue() {
  for (const IssuedCall& call : calls_)
    std::visit([&](const auto& it) { issue(*partOf(*call.communicator), it); }, call.call);
  calls_.clear();
  for (Part& part : parts_)
    for (Line& line : part.lines)
      for (auto& work : line.works)
        line.pointers.push_back(std::visit([](auto& it) -> Work* { return &it; }, work));
}

Task::Line Task::lineFor(const CollectiveCall&) {
  return {};
}
Task::Line Task::lineFor(const PeerCall& call) {
  return {true, call.peer, call.sends, {}, {}};
}

template <class Call>
void Task::issue(Part& part, const Call& call) {
  auto line =
      std::find_if(part.lines.begin(), part.lines.end(), [&](const Line& l) { return l.takes(call); });
  if (line == part.lines.end()) line = part.lines.insert(line, lineFor(call));
  line->works.emplace_back(part.member->issue(call));
}

// ---- its place in the orders ----

void Task::enter(const std::vector<std::shared_ptr<Task>>& tasks) {
  if (std::none_of(tasks.begin(), tasks.end(), [](const auto& task) { return task->mustWait(); })) return;
  const TaskOrder::Lock lock = TaskOrder::lock();
  for (const auto& task : tasks)
    if (task->mustWait()) task->enter();
}

// Nobody else issues on these communicators meanwhile: a thread at a time does.
bool Task::mustWait() const {
  return !streams_.empty() || std::any_of(parts_.begin(), parts_.end(), [](const Part& part) {
    return !part.communicator->tasks().empty();
  });
}

void Task::enter() {
  for (Part& part : parts_) part.communicator->tasks().add(shared_from_this());
  for (const auto& stream : streams_) stream->order().add(shared_from_this());
  entered_ = true;
  if (onCaller_) return;
  for (Part& part : parts_) part.operation.reset();
}

bool Task::mayBegin() const {
  if (allDropped()) return true;
  const auto firstIn = [this](const TaskOrder& order) { return order.first() == this; };
  return std::all_of(parts_.begin(), parts_.end(),
                     [&](const Part& part) { return part.dropped || firstIn(part.communicator->tasks()); }) &&
         std::all_of(streams_.begin(), streams_.end(),
                     [&](const auto& stream) { return firstIn(stream->order()); });
}

void Task::wakeRunner() {
  if (onCaller_)
    turn_.notify_all();
  else
    streams_.front()->order().changed().notify_all();
}

void Task::end() {
  for (const Part& part : parts_) part.communicator->tasks().remove(this);
  for (const auto& stream : streams_) {
    if (error_) stream->keep(*error_);
    stream->order().remove(this);
  }
}

bool Task::allDropped() const {
  return std::all_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.dropped; });
}

void Task::drop(Communicator& communicator) {
  const TaskOrder::Lock lock = TaskOrder::lock();
  const std::deque<std::shared_ptr<Task>> tasks = communicator.tasks().tasks();
  for (const auto& task : tasks)
    if (!task->begun_) task->dropPart(*task->partOf(communicator));
}

void Task::dropPart(Part& part) {
  keep(Error(Code::InvalidUsage,
             concat("rank ", part.member->rank(), " aborted the communicator before the call began")));
  part.dropped = true;
  part.operation.reset();
  part.communicator->tasks().remove(this);
  if (allDropped()) end();
  wakeRunner();
}

// ---- the run ----

void Task::runHere() {
  if (entered_) {
    TaskOrder::Lock lock = TaskOrder::lock();
    turn_.wait(lock, [this] { return mayBegin(); });
    begin();
  }
  run();
  if (entered_) {
    const TaskOrder::Lock lock = TaskOrder::lock();
    end();
  }
  if (error_) throw Error(*error_);
}

void Task::keep(const Error& error) {
  if (!error_) error_.emplace(error);
}

void Task::run() noexcept {
  try {
    driveLines();
  } catch (const Error& error) {
    keep(error);
  } catch (const std::exception& error) {
    keep(Error(Code::SystemError, error.what()));
    for (const Part& part : parts_)  // peers wait for them
      if (part.running > 0) part.member->fail(Code::SystemError, error.what());
  }
}

void Task::driveLines() {
  std::vector<WorkQueue> queues;
  std::vector<Doorbell*> bells;
  for (Part& part : parts_) {
    if (part.dropped) continue;
    bells.push_back(part.member->doorbell());
    part.running = part.lines.size();
    for (Line& line : part.lines) queues.push_back({line.pointers});
  }
  if (queues.empty()) return;
  auto queue = queues.begin();
  for (Part& part : parts_) {
    if (part.dropped) continue;
    for (size_t line = 0; line < part.lines.size(); ++line, ++queue)
      queue->ended = [this, &part, &ended = *queue] { endLine(part, ended.failed); };
  }
  Waiter waiter;
  waiter.reset(policy(), bells.data(), static_cast<uint32_t>(bells.size()));
  drive(queues, waiter);
}

// A rank that is done may be destroyed or aborted while others go on; the last one's end is the task's.
void Task::endLine(Part& part, bool failed) {
  if (failed) {
    const Member::Failure failure = part.member->failure();
    if (!onCaller_) setLastError(failure.message);
    keep(Error(failure.code, failure.message));
  }
  if (--part.running > 0) return;
  part.operation.reset();
  const bool last = std::none_of(parts_.begin(), parts_.end(), [](const Part& p) { return p.running > 0; });
  if (!entered_ || last) return;
  const TaskOrder::Lock lock = TaskOrder::lock();
  part.communicator->tasks().remove(this);
}

// How to wait for all of these ranks at once.
WaitPolicy Task::policy() const {
  WaitPolicy policy{UINT32_MAX, UINT32_MAX};
  for (const Part& part : parts_) {
    if (part.dropped) continue;
    const WaitPolicy own = part.member->waitPolicy(!onCaller_);
    policy = {std::min(policy.spins, own.spins), std::min(policy.yields, own.yields)};
  }
  return policy;
}

// ---- groups of calls ----

namespace {

// `calls` by sets that share no communicator and no stream (to have none counts as one: the caller waits for
// all of those), each in order.
std::vector<std::vector<IssuedCall>> independentSets(std::vector<IssuedCall> calls) {
  std::vector<std::vector<IssuedCall>> sets;
  if (std::all_of(calls.begin(), calls.end(), [](const auto& call) { return call.stream == nullptr; })) {
    sets.push_back(std::move(calls));
    return sets;
  }
  std::map<const void*, const void*> up;  // from a communicator or stream towards the one its set is known by
  const auto root = [&](const void* it) {
    for (const void* next; (next = up.try_emplace(it, it).first->second) != it;) it = next;
    return it;
  };
  for (const IssuedCall& call : calls) up[root(call.communicator)] = root(call.stream.get());
  std::map<const void*, std::vector<IssuedCall>> byRoot;
  for (IssuedCall& call : calls) byRoot[root(call.communicator)].push_back(std::move(call));
  for (auto& [_, set] : byRoot) sets.push_back(std::move(set));
  return sets;
}

}  // namespace

void launch(std::vector<IssuedCall> calls) {
  std::vector<std::shared_ptr<Task>> tasks;
  for (std::vector<IssuedCall>& set : independentSets(std::move(calls)))
    tasks.push_back(std::make_shared<Task>(std::move(set)));
  for (const auto& task : tasks) task->issue();
  const bool inBackground =
      std::any_of(tasks.begin(), tasks.end(), [](const auto& task) { return task->inBackground(); });
  Task::enter(tasks);
  for (const auto& task : tasks)
    if (task->runsOnCaller()) task->runHere();  // at most one
  if (inBackground) throw Error(Code::InProgress, "calls are in progress");
}

}  // namespace topoccl
