#include "schedule/checker.h"

#include <vector>

#include "base/error.h"
#include "schedule/check/machine.h"
#include "schedule/check/network.h"
#include "schedule/stepper.h"
#include "schedule/text.h"
#include "schedule/validate.h"

namespace topoccl {
namespace {

// Bounds on what a check may take: schedules may come from a file.
constexpr uint64_t kMostCells = uint64_t{1} << 27;
constexpr uint64_t kMostLeaves = uint64_t{1} << 30;

std::string flawOfAgreement(const Schedule& first, const Schedule& schedule) {
  const auto differ = [&](const char* what, uint64_t here, uint64_t there) {
    return concat("rank ", schedule.rank, " has ", here, " ", what, " where rank ", first.rank, " has ",
                  there);
  };
  if (schedule.chunks != first.chunks) return differ("chunks", schedule.chunks, first.chunks);
  if (schedule.blocks != first.blocks) return differ("blocks", schedule.blocks, first.blocks);
  if (schedule.minSlots != first.minSlots) return differ("slots", schedule.minSlots, first.minSlots);
  if (schedule.copyInPlace != first.copyInPlace)
    return differ("`copy in place`", schedule.copyInPlace, first.copyInPlace);
  if (schedule.slotChunks != first.slotChunks)
    return differ("chunks in a slot", schedule.slotChunks, first.slotChunks);
  return "";
}

std::string flawOfCollective(const std::vector<Schedule>& schedules) {
  if (schedules.empty()) return "there are no schedules";
  for (size_t i = 0; i < schedules.size(); ++i) {
    const Schedule& schedule = schedules[i];
    std::string flaw = flawOfSchedule(schedule);
    if (!flaw.empty()) return concat("rank ", schedule.rank, " ", flaw);
    if (static_cast<size_t>(schedule.rank) != i || static_cast<size_t>(schedule.ranks) != schedules.size())
      return concat("schedule ", i, " of ", schedules.size(), " is for rank ", schedule.rank, " of ",
                    schedule.ranks);
    flaw = flawOfAgreement(schedules[0], schedule);
    if (!flaw.empty()) return flaw;
  }
  return "";
}

// One work: advances lanes in turn until none can go on.
class WorkRun {
 public:
  WorkRun(const std::vector<Schedule>& schedules, SymbolMachine& machine, Network& network)
      : schedules_(schedules),
        machine_(machine),
        network_(network),
        cursors_(machine.lanes().size()),
        done_(machine.lanes().size()) {}

  std::string run() {
    bool progress = true;
    while (progress) {
      progress = false;
      for (uint32_t lane = 0; lane < cursors_.size(); ++lane) {
        if (done_[lane]) continue;
        machine_.enter(lane);
        const LaneName& name = machine_.lanes()[lane];
        const Schedule& schedule = schedules_[static_cast<size_t>(name.rank)];
        const Advance advanced = advance(view(schedule), name.lane, cursors_[lane], machine_);
        if (advanced.state == LaneState::Failed) return machine_.fault();
        done_[lane] = advanced.state == LaneState::Done;
        progress = progress || advanced.steps != 0;
        steps_ += advanced.steps;
      }
    }
    return deadlock();
  }

  uint64_t steps() const { return steps_; }

 private:
  // Follows who waits for whom from the first lane that waits until it closes or leads to a lane that is
  // done.
  std::string deadlock() {
    uint32_t lane = 0;
    while (lane < cursors_.size() && done_[lane]) ++lane;
    if (lane == cursors_.size()) return "";
    std::string text = "deadlock: ";
    std::vector<bool> told(cursors_.size());
    constexpr int kEnough = 8;
    for (int count = 0; count < kEnough && !told[lane]; ++count) {
      told[lane] = true;
      uint32_t other = lane;
      text += concat(machine_.nameOf(lane, cursors_[lane].step), " waits for ", waitsFor(lane, other));
      if (other == lane) return text;
      if (done_[other]) {
        const LaneName& name = machine_.lanes()[other];
        return text + concat("; rank ", name.rank, " lane ", name.lane, " is done");
      }
      lane = other;
      text += "; ";
    }
    return text + "and so on";
  }

  // What the lane's next step lacks, and the lane that would have to provide it.
  std::string waitsFor(uint32_t lane, uint32_t& other) {
    const LaneName& name = machine_.lanes()[lane];
    const Schedule& schedule = schedules_[static_cast<size_t>(name.rank)];
    const LaneCursor& cursor = cursors_[lane];
    const Step& step = schedule.steps[schedule.lanes[name.lane].firstStep + cursor.step];
    const Operand& operand = schedule.operands[step.firstOperand + cursor.operand];
    Link& link = network_.link(name.rank, operand);
    if (operand.place == Place::Receive) {
      if (link.used) other = link.senderLane;
      return concat("a message on connection ", print(*link.key));
    }
    for (const Reader& reader : link.readers)
      if (reader.used && reader.received == link.freed) other = reader.lane;
    return concat("a free slot on connection ", print(*link.key));
  }

  const std::vector<Schedule>& schedules_;
  SymbolMachine& machine_;
  Network& network_;
  std::vector<LaneCursor> cursors_;
  std::vector<bool> done_;
  uint64_t steps_ = 0;
};

std::string runWorks(const std::vector<Schedule>& schedules, const Goal& goal, const CheckOptions& options,
                     Network& network, uint64_t& steps) {
  SymbolMachine machine(schedules, goal, options, network);
  for (int work = 0; work < options.works; ++work) {
    std::string flaw = machine.beginWork();
    if (!flaw.empty()) return flaw;
    WorkRun run(schedules, machine, network);
    flaw = run.run();
    steps += run.steps();
    if (flaw.empty()) flaw = machine.endWork();
    if (!flaw.empty()) return flaw;
  }
  // The user takes the buffers back from the last work too.
  return machine.beginWork();
}

std::string describe(const CheckOptions& options) {
  const char* sharing = options.sharing == Sharing::Copies       ? "copies"
                        : options.sharing == Sharing::References ? "references"
                                                                 : "offers";
  return concat(options.inPlace ? "in place" : "out of place", ", ", sharing, ", ", options.slots, " slots");
}

}  // namespace

Verdict check(const std::vector<Schedule>& schedules, const Goal& goal, const CheckOptions& asked) {
  Verdict verdict;
  verdict.message = flawOfCollective(schedules);
  verdict.ok = verdict.message.empty();
  if (!verdict.ok) return verdict;

  CheckOptions options = asked;
  if (options.slots == 0) options.slots = schedules[0].minSlots;
  if (options.pieces == 0) options.pieces = uint64_t{options.slots} + 2;
  const Schedule& first = schedules[0];
  if (Memory::chunks(schedules, options.inPlace) > kMostCells / options.pieces ||
      uint64_t{first.chunks} * schedules.size() > kMostLeaves) {
    verdict.message = "the collective is too large to check";
  } else {
    Network network(schedules, verdict.message);
    if (verdict.message.empty()) verdict.message = runWorks(schedules, goal, options, network, verdict.steps);
  }
  verdict.ok = verdict.message.empty();
  if (!verdict.ok) verdict.message = concat(describe(options), ": ", verdict.message);
  return verdict;
}

Verdict prove(const std::vector<Schedule>& schedules, const Goal& goal) {
  Verdict verdict;
  uint64_t steps = 0;
  for (const Sharing sharing : {Sharing::Copies, Sharing::References, Sharing::Offers})
    for (const bool inPlace : {false, true}) {
      if (inPlace && !goal.inPlace) continue;
      CheckOptions options;
      options.inPlace = inPlace;
      options.sharing = sharing;
      verdict = check(schedules, goal, options);
      steps += verdict.steps;
      verdict.steps = steps;
      if (!verdict.ok) return verdict;
    }
  return verdict;
}

}  // namespace topoccl
