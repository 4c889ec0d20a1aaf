#include "communicator/task.h"

#include <algorithm>
#include <exception>
#include <map>
#include <utility>

#include "communicator/check_call.h"
#include "communicator/host_stream.h"

namespace topoccl {

uint64_t Task::entered_ = 0;

namespace {

const Error& abortedError() {
  static const auto* const error =
      new Error(Code::InvalidUsage, "the communicator was aborted before the call began");
  return *error;
}

}  // namespace

Task::Task(std::vector<IssuedCall> calls) : calls_(std::move(calls)) {
  for (const IssuedCall& call : calls_) {
    onCaller_ |= call.stream == nullptr;
    inBackground_ |= call.inBackground;
    if (call.stream != nullptr && std::find(streams_.begin(), streams_.end(), call.stream) == streams_.end())
      streams_.push_back(call.stream);
    if (worksOf(*call.communicator) == nullptr) ranks_.emplace_back(*call.communicator);
  }
}

RankWorks* Task::worksOf(const Communicator& communicator) {
  const auto found = std::find_if(ranks_.begin(), ranks_.end(),
                                  [&](const RankWorks& it) { return &it.communicator() == &communicator; });
  return found == ranks_.end() ? nullptr : &*found;
}

void Task::issue() {
  for (RankWorks& works : ranks_) works.begin(calls_.size());
  for (const IssuedCall& call : calls_)
    std::visit([&](const auto& it) { worksOf(*call.communicator)->issue(it); }, call.call);
  calls_.clear();
}

void Task::checkPairs() const {
  for (const RankWorks& works : ranks_)
    topoccl::checkPairs(calls_, works.communicator(), works.member().rank());
}

void Task::giveUp() noexcept {
  for (const RankWorks& works : ranks_)
    if (!works.dropped() && !works.ended()) works.member().failForMemory();
}

// ---- its place in the orders ----

void Task::enter(const std::vector<std::shared_ptr<Task>>& tasks) {
  if (std::none_of(tasks.begin(), tasks.end(), [](const auto& task) { return task->mustWait(); })) return;
  const TaskOrder::Lock lock = TaskOrder::lock();
  try {
    for (const auto& task : tasks)
      if (task->mustWait()) task->enter();
  } catch (...) {
    for (const auto& task : tasks) task->leaveOrders();
    throw;
  }
  for (const auto& task : tasks) {
    if (task->onCaller_) continue;
    for (RankWorks& works : task->ranks_) works.letGo();
  }
}

// Nobody else issues on these communicators meanwhile: a thread at a time does.
bool Task::mustWait() const {
  return !streams_.empty() || std::any_of(ranks_.begin(), ranks_.end(), [](const RankWorks& works) {
    return !works.communicator().tasks().empty();
  });
}

void Task::enter() {
  static_cast<void>(abortedError());  // made while there is memory
  number_ = ++entered_;
  for (const RankWorks& works : ranks_) works.communicator().tasks().add(shared_from_this());
  for (const auto& stream : streams_) stream->order().add(shared_from_this());
}

void Task::leaveOrders() {
  for (const RankWorks& works : ranks_) works.communicator().tasks().remove(this);
  for (const auto& stream : streams_) stream->order().remove(this);
}

bool Task::mayBegin() const {
  if (allDropped()) return true;
  const auto firstIn = [this](const TaskOrder& order) { return order.first() == this; };
  return std::all_of(
             ranks_.begin(), ranks_.end(),
             [&](const RankWorks& it) { return it.dropped() || firstIn(it.communicator().tasks()); }) &&
         std::all_of(streams_.begin(), streams_.end(), [&](const auto& it) { return firstIn(it->order()); });
}

void Task::wakeRunner() {
  if (onCaller_)
    turn_.notify_all();
  else
    streams_.front()->order().changed().notify_all();
}

void Task::leaveWithError() {
  if (error_)
    for (const auto& stream : streams_) stream->keep(*error_, number_);
  leaveOrders();
}

void Task::end() {
  const TaskOrder::Lock lock = TaskOrder::lock();
  leaveWithError();
}

bool Task::allDropped() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const RankWorks& it) { return it.dropped(); });
}

void Task::drop(Communicator& communicator) {
  while (dropOne(communicator) != nullptr) {
  }
}

// Which is released without the lock.
std::shared_ptr<Task> Task::dropOne(Communicator& communicator) {
  const TaskOrder::Lock lock = TaskOrder::lock();
  const auto& tasks = communicator.tasks().tasks();
  const auto found = std::find_if(tasks.begin(), tasks.end(), [](const auto& task) { return !task->begun_; });
  if (found == tasks.end()) return nullptr;
  std::shared_ptr<Task> task = *found;
  task->drop(*task->worksOf(communicator));
  return task;
}

void Task::drop(RankWorks& works) {
  keep(abortedError());
  works.drop();
  works.communicator().tasks().remove(this);
  if (allDropped() && !onCaller_) leaveWithError();
  wakeRunner();
}

// ---- the run ----

void Task::runHere() {
  if (number_ == 0) {
    run();
  } else {
    {
      TaskOrder::Lock lock = TaskOrder::lock();
      turn_.wait(lock, [this] { return mayBegin(); });
      begin();
    }
    run();
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
  } catch (const std::exception&) {
    giveUp();
    keep(outOfMemoryError());
  }
}

void Task::driveLines() {
  std::vector<WorkQueue> queues;
  for (RankWorks& works : ranks_) {
    if (works.dropped()) continue;
    bells_.push_back(works.doorbell());
    works.addQueues(queues);
  }
  auto queue = queues.begin();
  for (RankWorks& works : ranks_) {
    if (works.dropped()) continue;
    for (size_t line = 0; line < works.lines(); ++line, ++queue)
      queue->ended = [this, &works, &ended = *queue] { endLine(works, ended.failed); };
  }
  if (queues.empty()) return;
  waiter_.reset(waitPolicy(), bells_.data(), static_cast<uint32_t>(bells_.size()));
  drive(queues, waiter_);
}

// A rank that is done may be destroyed or aborted, or run its next calls, while others go on; the last one's
// end is the task's.
void Task::endLine(RankWorks& works, bool failed) {
  if (failed) {
    const Error failure = works.member().failure().value_or(outOfMemoryError());
    if (!onCaller_) setLastError(failure.what());
    keep(failure);
  }
  if (!works.endLine()) return;
  works.member().watch().moved();
  waiter_.forget(works.doorbell());
  works.letGo();
  const bool last = std::all_of(ranks_.begin(), ranks_.end(),
                                [](const RankWorks& it) { return it.dropped() || it.ended(); });
  if (number_ == 0 || last) return;
  const TaskOrder::Lock lock = TaskOrder::lock();
  works.communicator().tasks().remove(this);
}

// How to wait for all of these ranks at once.
WaitPolicy Task::waitPolicy() const {
  WaitPolicy policy{UINT32_MAX, UINT32_MAX};
  for (const RankWorks& works : ranks_) {
    if (works.dropped()) continue;
    const WaitPolicy own = works.member().waitPolicy(!onCaller_);
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
  for (const auto& task : tasks) task->checkPairs();
  try {
    for (const auto& task : tasks) task->issue();
    Task::enter(tasks);
  } catch (const std::exception&) {
    for (const auto& task : tasks) task->giveUp();
    throw;
  }
  const bool inBackground =
      std::any_of(tasks.begin(), tasks.end(), [](const auto& task) { return task->inBackground(); });
  for (const auto& task : tasks)
    if (task->runsOnCaller()) task->runHere();  // at most one
  if (inBackground) throw Error(Code::InProgress, "calls are in progress");
}

}  // namespace topoccl
