#include "schedule/validate.h"

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

#include "base/error.h"
#include "schedule/text.h"

namespace topoccl {
namespace {

bool reads(const Connection& connection, int rank) {
  return std::binary_search(connection.readers.begin(), connection.readers.end(), rank);
}

std::string flawOfOperand(const Schedule& schedule, const Operand& operand, bool input) {
  const bool allowed =
      input ? operand.place != Place::Send : operand.place != Place::Receive && operand.place != Place::In;
  if (!allowed) return concat(print(operand), " can't be an ", input ? "input" : "output");
  if (operand.place != Place::Send && operand.place != Place::Receive) return "";
  if (operand.connection >= schedule.connections.size())
    return concat(print(operand), ": there are only ", schedule.connections.size(), " connections");
  const Connection& connection = schedule.connections[operand.connection];
  if (input && !reads(connection, schedule.rank))
    return concat(print(operand), ": rank ", schedule.rank, " is no reader of that connection");
  if (!input && connection.from != schedule.rank)
    return concat(print(operand), ": that connection comes from rank ", connection.from);
  return "";
}

// A connection carries one message per step, a buffer takes one result. (Whether adding `in` twice is wrong
// is for the goal to say.)
std::string flawOfRepeats(std::vector<Operand> operands) {
  const auto order = [](const Operand& a, const Operand& b) {
    return std::tie(a.place, a.connection) < std::tie(b.place, b.connection);
  };
  std::sort(operands.begin(), operands.end(), order);
  const auto found =
      std::adjacent_find(operands.begin(), operands.end(),
                         [](const Operand& a, const Operand& b) { return a == b && a.place != Place::In; });
  return found == operands.end() ? "" : concat(print(*found), " appears twice");
}

std::string flawOfRange(const char* what, uint32_t first, uint32_t span, uint32_t count) {
  if (uint64_t{first} + span <= count) return "";
  return concat(what, " ", uint64_t{first} + span - 1, ": there are only ", count);
}

std::string flawOfSide(const Schedule& schedule, const Operand* operands, uint32_t count, bool input,
                       uint32_t chunk, uint32_t span) {
  for (const Operand* operand = operands; operand != operands + count; ++operand) {
    std::string flaw = flawOfOperand(schedule, *operand, input);
    if (flaw.empty()) {
      const bool scratch = operand->place == Place::Scratch;
      flaw = flawOfRange(scratch ? "scratch chunk" : "chunk", chunk, span,
                         scratch ? schedule.scratchChunks : schedule.chunks);
    }
    if (!flaw.empty()) return flaw;
  }
  return "";
}

}  // namespace

std::string flawOfHeader(const Schedule& schedule) {
  if (schedule.ranks < 1) return "there must be at least one rank";
  if (schedule.rank < 0 || schedule.rank >= schedule.ranks)
    return concat("rank ", schedule.rank, ": there are only ", schedule.ranks);
  if (schedule.chunks < 1) return "there must be at least one chunk";
  if (schedule.blocks < 1 || schedule.chunks % schedule.blocks != 0)
    return concat("blocks ", schedule.blocks, ": the ", schedule.chunks,
                  " chunks must be a multiple of them");
  if (schedule.minSlots < 1) return "there must be at least one slot";
  if (schedule.slotChunks < 1) return "a slot must take at least one chunk";
  return "";
}

std::string flawOfConnection(const Schedule& schedule, const Connection& connection) {
  if (connection.from < 0 || connection.from >= schedule.ranks)
    return concat("rank ", connection.from, ": there are only ", schedule.ranks);
  if (connection.readers.empty()) return "nobody reads it";
  for (const int reader : connection.readers)
    if (reader < 0 || reader >= schedule.ranks)
      return concat("rank ", reader, ": there are only ", schedule.ranks);
  const auto& readers = connection.readers;
  if (std::adjacent_find(readers.begin(), readers.end(), std::greater_equal<>()) != readers.end())
    return "readers must ascend";
  if (connection.from != schedule.rank && !reads(connection, schedule.rank))
    return concat("rank ", schedule.rank, " is at neither end");
  return "";
}

bool KeyOrder::operator()(const Connection& a, const Connection& b) const {
  return std::tie(a.from, a.readers, a.channel, a.tag) < std::tie(b.from, b.readers, b.channel, b.tag);
}

std::string flawOfStep(const Schedule& schedule, const Step& step) {
  const uint64_t last = uint64_t{step.firstOperand} + step.inputCount + step.outputCount;
  if (last > schedule.operands.size()) return "its operands lie outside the schedule";
  if (step.inputCount == 0) return "it has no input";
  if (step.outputCount == 0) return "it has no output";
  if (step.span == 0) return "it spans no chunk";
  if (step.span > schedule.slotChunks)
    return concat("it spans ", step.span, " chunks: a slot takes only ", schedule.slotChunks);
  const Operand* inputs = schedule.operands.data() + step.firstOperand;
  const Operand* outputs = inputs + step.inputCount;
  std::string flaw = flawOfSide(schedule, inputs, step.inputCount, true, step.inChunk, step.span);
  if (flaw.empty()) flaw = flawOfSide(schedule, outputs, step.outputCount, false, step.outChunk, step.span);
  if (flaw.empty()) flaw = flawOfRepeats({inputs, outputs});
  if (flaw.empty()) flaw = flawOfRepeats({outputs, outputs + step.outputCount});
  return flaw;
}

std::string ConnectionEnds::claim(const Schedule& schedule, const Step& step, uint32_t lane) {
  constexpr uint32_t kNobody = UINT32_MAX;
  readerLane_.resize(schedule.connections.size(), kNobody);
  writerLane_.resize(schedule.connections.size(), kNobody);
  for (uint32_t i = 0; i < step.inputCount + step.outputCount; ++i) {
    const Operand& operand = schedule.operands[step.firstOperand + i];
    if (operand.place != Place::Receive && operand.place != Place::Send) continue;
    uint32_t& owner = (operand.place == Place::Receive ? readerLane_ : writerLane_)[operand.connection];
    if (owner != kNobody && owner != lane) return concat(print(operand), " belongs to lane ", owner);
    owner = lane;
  }
  return "";
}

namespace {

std::string flawOfConnections(const Schedule& schedule) {
  std::set<Connection, KeyOrder> seen;
  for (size_t i = 0; i < schedule.connections.size(); ++i) {
    const Connection& connection = schedule.connections[i];
    std::string flaw = flawOfConnection(schedule, connection);
    if (flaw.empty() && !seen.insert(connection).second) flaw = "it is there already";
    if (!flaw.empty()) return concat("connection ", i, ": ", print(connection), ": ", flaw);
  }
  return "";
}

std::string flawOfLanes(const Schedule& schedule) {
  ConnectionEnds ends;
  for (uint32_t index = 0; index < schedule.lanes.size(); ++index) {
    const Lane& lane = schedule.lanes[index];
    if (uint64_t{lane.firstStep} + lane.stepCount > schedule.steps.size())
      return concat("lane ", index, ": its steps lie outside the schedule");
    for (uint32_t s = 0; s < lane.stepCount; ++s) {
      const Step& step = schedule.steps[lane.firstStep + s];
      std::string flaw = flawOfStep(schedule, step);
      if (flaw.empty()) flaw = ends.claim(schedule, step, index);
      if (!flaw.empty()) return concat("lane ", index, " step ", s, ": ", flaw);
    }
  }
  return "";
}

}  // namespace

std::string flawOfSchedule(const Schedule& schedule) {
  std::string flaw = flawOfHeader(schedule);
  if (flaw.empty()) flaw = flawOfConnections(schedule);
  if (flaw.empty()) flaw = flawOfLanes(schedule);
  return flaw;
}

std::string nameOfStep(const Schedule& schedule, uint32_t lane, uint32_t step) {
  const Step& which = schedule.steps[schedule.lanes[lane].firstStep + step];
  return concat("lane ", lane, " step ", step, " `", print(schedule, which), "`");
}

}  // namespace topoccl
