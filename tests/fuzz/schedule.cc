// Schedules as text, from anyone. The first two characters choose a collective and its root; the rest is the
// schedules of all ranks, one after the other. What follows a zero byte damages them as data.
//
// Never: a crash or a number that is believed before it is checked, text that says something else once it is
// printed and parsed again, or a schedule that the checker proves and the interpreter finds wrong.
#include <algorithm>
#include <string>
#include <vector>

#include "algorithms/interpreter.h"
#include "fuzz.h"
#include "schedule/checker.h"
#include "schedule/text.h"
#include "schedule/validate.h"

namespace topoccl::fuzz {
namespace {

// Each begins with the line that starts with "rank".
std::vector<std::string_view> textsOf(std::string_view text) {
  std::vector<std::string_view> texts;
  while (!text.empty()) {
    const size_t end = text.find("\nrank", 1);
    texts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), texts.back().size() + 1));
  }
  return texts;
}

Schedule parsed(std::string_view text) {
  Schedule schedule = parse(text);
  require(flawOfSchedule(schedule).empty(), "what is parsed is valid");
  const std::string printed = print(schedule);
  require(parse(printed) == schedule, "the same when printed and parsed again");
  return schedule;
}

// Small enough to run in no time.
bool small(const Schedule& schedule) {
  return schedule.ranks <= 4 && schedule.chunks <= 16 && schedule.scratchChunks <= 16 &&
         schedule.minSlots <= 4 && schedule.slotChunks <= 16 && schedule.steps.size() <= 64;
}

// Overwrites a number somewhere in the schedule.
void damage(Schedule& schedule, ByteReader& input) {
  const uint8_t what = below(input, 10);
  const size_t at = input.number<uint8_t>();
  const auto small = static_cast<uint32_t>(input.number<uint8_t>());
  const uint32_t value = small < 250 ? small : UINT32_MAX - (small - 250);
  Step noStep;
  Lane noLane;
  Operand noOperand{};
  Connection noConnection;
  const auto pick = [&](auto& all, auto& none) -> auto& {
    return all.empty() ? none : all[at % all.size()];
  };
  Step& step = pick(schedule.steps, noStep);
  Lane& lane = pick(schedule.lanes, noLane);
  Operand& operand = pick(schedule.operands, noOperand);
  Connection& connection = pick(schedule.connections, noConnection);
  uint32_t* const numbers[] = {&step.firstOperand, &step.inputCount, &step.outputCount, &step.inChunk,
                               &step.span,         &lane.firstStep,  &lane.stepCount,   &operand.connection};
  if (what < std::size(numbers))
    *numbers[what] = value;
  else if (what == 8)
    connection.from = static_cast<int>(value);
  else
    connection.readers.assign(1, static_cast<int>(value));
}

void judge(const std::vector<Schedule>& schedules, Collective collective, int root) {
  const Goal goal = goalOf(collective, static_cast<int>(schedules.size()), root);
  if (!prove(schedules, goal).ok) return;
  for (const bool inPlace : {false, true}) {
    if (inPlace && !goal.inPlace) continue;
    for (const bool share : {false, true}) {
      const std::string flaw = interpret(
          schedules, goal, {.inPlace = inPlace, .share = share, .slots = schedules[0].minSlots, .seed = 1});
      if (!flaw.empty()) std::fprintf(stderr, "%s\n", flaw.c_str());
      require(flaw.empty(), "what is proved computes what it should");
    }
  }
}

}  // namespace
}  // namespace topoccl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace topoccl::fuzz;
  if (size < 2) return 0;
  const std::string_view whole = inputOf(data + 2, size - 2);
  const std::string_view text = whole.substr(0, whole.find('\0'));
  std::vector<topoccl::Schedule> schedules;
  try {
    for (const std::string_view one : textsOf(text)) schedules.push_back(parsed(one));
  } catch (const topoccl::Error& error) {
    require(error.code() == topoccl::Code::InvalidArgument, "bad text is an argument's fault");
    return 0;
  }
  if (schedules.empty() || !std::all_of(schedules.begin(), schedules.end(), small)) return 0;
  topoccl::ByteReader damages(whole.substr(text.size()));
  damages.raw(1);
  while (damages.left() > 0)
    damage(schedules[below(damages, static_cast<unsigned>(schedules.size()))], damages);
  const int root = data[1] % static_cast<int>(schedules.size());
  judge(schedules, static_cast<topoccl::Collective>(data[0] % topoccl::kCollectives), root);
  return 0;
}
