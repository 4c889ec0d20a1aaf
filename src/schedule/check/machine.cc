#include "schedule/check/machine.h"

#include <algorithm>

#include "base/error.h"
#include "schedule/text.h"
#include "schedule/validate.h"

namespace topoccl {
namespace {

std::vector<uint32_t> laneCounts(const std::vector<Schedule>& schedules) {
  std::vector<uint32_t> counts;
  for (const Schedule& schedule : schedules) counts.push_back(static_cast<uint32_t>(schedule.lanes.size()));
  return counts;
}

const char* nameOf(Place buffer) {
  return buffer == Place::In ? "in" : buffer == Place::Out ? "out" : "scratch";
}

}  // namespace

SymbolMachine::SymbolMachine(const std::vector<Schedule>& schedules, const Goal& goal,
                             const CheckOptions& options, Network& network)
    : schedules_(schedules),
      goal_(goal),
      options_(options),
      network_(network),
      symbols_(schedules[0].ranks, schedules[0].chunks),
      memory_(schedules, goal, options.pieces, options.inPlace),
      clocks_(laneCounts(schedules)) {
  for (const Schedule& schedule : schedules)
    for (uint32_t lane = 0; lane < schedule.lanes.size(); ++lane) lanes_.push_back({schedule.rank, lane});
}

bool SymbolMachine::ready(const Operand& operand) {
  Link& link = network_.link(rank(), operand);
  if (operand.place == Place::Send) return link.slots.size() < options_.slots;
  return Network::next(link, network_.reader(rank(), operand)) != nullptr;
}

bool SymbolMachine::perform(const Step& step, const Operand* inputs, const Operand* outputs, uint64_t piece) {
  const uint32_t first = schedule().lanes[lanes_[lane_].lane].firstStep;
  now_ = {lane_, clocks_.tick(lane_), static_cast<uint32_t>(&step - schedule().steps.data()) - first};
  if (shiftsOntoItself(step, inputs, outputs))
    return fail("its input and output overlap but are not the same");
  // What the slots teach comes first: all of the step happens after all of them are full.
  if (!takeMessages(step, inputs, piece)) return false;
  if (!readInputs(step, inputs, piece) || !combine(step)) return false;
  if (!writeOutputs(step, inputs, outputs, piece)) return false;
  for (uint32_t i = 0; i < step.outputCount; ++i)
    if (outputs[i].place == Place::Send && !publish(step, inputs, outputs[i], piece)) return false;
  freeMessages(step, inputs);
  return true;
}

// Element by element such a step would read what it has just written.
bool SymbolMachine::shiftsOntoItself(const Step& step, const Operand* inputs, const Operand* outputs) const {
  const uint32_t low = std::min(step.inChunk, step.outChunk);
  const uint32_t high = std::max(step.inChunk, step.outChunk);
  if (low == high || high - low >= step.span) return false;
  for (uint32_t i = 0; i < step.inputCount; ++i)
    for (uint32_t o = 0; o < step.outputCount; ++o)
      if (inputs[i].place != Place::Receive && outputs[o].place != Place::Send &&
          memory_.alias(inputs[i].place, outputs[o].place))
        return true;
  return false;
}

bool SymbolMachine::takeMessages(const Step& step, const Operand* inputs, uint64_t piece) {
  for (uint32_t i = 0; i < step.inputCount; ++i) {
    if (inputs[i].place != Place::Receive) continue;
    Reader& reader = network_.reader(rank(), inputs[i]);
    const Message& message = *Network::next(network_.link(rank(), inputs[i]), reader);
    if (message.chunk != step.inChunk || message.span != step.span || message.piece != piece)
      return fail(concat(print(inputs[i]), " brings chunk ", message.chunk, " span ", message.span, " piece ",
                         message.piece, " (of ", nameOf(message.stamp.lane, message.senderStep),
                         ") where chunk ", step.inChunk, " span ", step.span, " piece ", piece,
                         " is expected"));
    clocks_.learn(lane_, message.stamp, reader.learned);
  }
  return true;
}

bool SymbolMachine::readInputs(const Step& step, const Operand* inputs, uint64_t piece) {
  inputs_.resize(step.inputCount);
  for (uint32_t i = 0; i < step.inputCount; ++i) {
    if (inputs[i].place == Place::Receive) {
      const Message& message =
          *Network::next(network_.link(rank(), inputs[i]), network_.reader(rank(), inputs[i]));
      if (message.referent != Place::Send && !readReferent(message)) return false;
      inputs_[i] = message.values;
    } else {
      inputs_[i].resize(step.span);
      if (!readBuffer(rank(), inputs[i].place, step.inChunk, step.span, piece, inputs_[i].data()))
        return false;
    }
  }
  return true;
}

bool SymbolMachine::readReferent(const Message& message) {
  Values values(message.span);
  const int sender = lanes_[message.stamp.lane].rank;
  if (!readBuffer(sender, message.referent, message.referentChunk, message.span, message.piece,
                  values.data()))
    return false;
  if (values == message.values) return true;
  return fail(concat("the reference of ", nameOf(message.stamp.lane, message.senderStep),
                     " leads to memory that was changed since"));
}

bool SymbolMachine::readBuffer(int of, Place place, uint32_t chunk, uint32_t span, uint64_t piece,
                               Value* values) {
  const auto knows = [this](const Access& earlier) { return clocks_.knows(lane_, earlier); };
  for (uint32_t i = 0; i < span; ++i) {
    Cell& cell = memory_.cell(of, place, chunk + i, piece);
    if (!has(cell, of, place, chunk + i)) return false;
    const Access* conflict = read(cell, now_, knows);
    if (conflict != nullptr) return race("reads", of, place, chunk + i, piece, *conflict);
    const bool raw = symbols_.isRaw(cell.value);
    if (place == Place::In && !raw && cell.value != Symbols::kEmpty && !stillIn(cell.value, of, chunk + i))
      return fail(concat("reads in chunk ", chunk + i, " of rank ", of, ", which was overwritten in place"));
    if (place != Place::In && (raw || cell.value == Symbols::kUnwritten))
      return fail(concat("reads ", topoccl::nameOf(place), " chunk ", chunk + i, " of rank ", of,
                         ", which was not written yet"));
    values[i] = place == Place::In && raw ? Symbols::scaled(cell.value) : cell.value;
  }
  return true;
}

bool SymbolMachine::combine(const Step& step) {
  result_.resize(step.span);
  terms_.resize(step.inputCount);
  for (uint32_t i = 0; i < step.span; ++i) {
    for (uint32_t k = 0; k < step.inputCount; ++k) terms_[k] = inputs_[k][i];
    const auto empty = std::count(terms_.begin(), terms_.end(), Symbols::kEmpty);
    if (empty != 0 && static_cast<size_t>(empty) != terms_.size())
      return fail("adds pieces of different chunks, which differ in size");
    const bool isFinal =
        std::any_of(terms_.begin(), terms_.end(), [this](Value term) { return symbols_.isFinal(term); });
    if (isFinal && (step.final || terms_.size() > 1))
      return fail("takes a result that has had `final` applied for a partial one");
    Value value = terms_.size() == 1 || empty != 0 ? terms_[0] : symbols_.sum(terms_.data(), terms_.size());
    if (step.final && empty == 0) value = symbols_.final(value);
    result_[i] = value;
  }
  return true;
}

// In place, such a step's data is where it belongs already: nothing is written. (Not so where there is a
// pre-multiplier.)
bool SymbolMachine::staysInPlace(const Step& step, const Operand* inputs) const {
  return options_.inPlace && !goal_.final && step.inputCount == 1 && inputs[0].place == Place::In &&
         step.inChunk == step.outChunk;
}

// Whether `in` still holds the user's data, though as a result.
bool SymbolMachine::stillIn(Value value, int of, uint32_t chunk) const {
  return !goal_.final && value == Symbols::scaled(symbols_.raw(of, chunk));
}

bool SymbolMachine::writeOutputs(const Step& step, const Operand* inputs, const Operand* outputs,
                                 uint64_t piece) {
  const auto knows = [this](const Access& earlier) { return clocks_.knows(lane_, earlier); };
  const bool stays = staysInPlace(step, inputs);
  for (uint32_t o = 0; o < step.outputCount; ++o) {
    if (outputs[o].place == Place::Send) continue;
    for (uint32_t i = 0; i < step.span; ++i) {
      Cell& cell = memory_.cell(rank(), outputs[o].place, step.outChunk + i, piece);
      if (!has(cell, rank(), outputs[o].place, step.outChunk + i)) return false;
      const bool written = outputs[o].place != Place::Out || !stays;
      const Access* conflict = written ? write(cell, now_, knows) : nullptr;
      if (conflict != nullptr)
        return race("writes", rank(), outputs[o].place, step.outChunk + i, piece, *conflict);
      cell.value = result_[i];
    }
  }
  return true;
}

bool SymbolMachine::publish(const Step& step, const Operand* inputs, const Operand& output, uint64_t piece) {
  Link& link = network_.link(rank(), output);
  if (options_.sharing == Sharing::Offers)
    for (const Reader& reader : link.readers)
      if (!writeOffer(link, reader, link.sent())) return false;
  Message& message = link.slots.emplace_back();
  message.piece = piece;
  message.chunk = step.outChunk;
  message.span = step.span;
  message.values = result_;
  message.stamp = clocks_.stamp(lane_);
  message.senderStep = now_.step;
  message.readersLeft = static_cast<uint32_t>(link.readers.size());
  if (mayRefer(step, inputs[0].place)) {
    message.referent = inputs[0].place;
    message.referentChunk = step.inChunk;
  }
  return true;
}

bool SymbolMachine::mayRefer(const Step& step, Place input) const {
  return options_.sharing != Sharing::Copies && step.inputCount == 1 && !step.final &&
         (input == Place::In || input == Place::Out) && !(options_.inPlace && schedule().copyInPlace);
}

// The reader's step for that message may have offered where it stores: then this step writes there, after
// what it knows itself and what the reader knew when it began its work, the earliest moment for an offer.
// The reader's own step still counts as a write, so that a proof holds for any mixture of slots and offers.
bool SymbolMachine::writeOffer(const Link& link, const Reader& reader, uint64_t message) {
  if (reader.steps.empty()) return true;
  const ReaderStep& target = reader.steps[message % reader.steps.size()];
  const uint64_t piece = message / reader.steps.size();
  if (!target.offers || piece >= options_.pieces) return true;
  const int of = reader.rank;
  const auto knows = [this, of](const Access& earlier) {
    return clocks_.knows(lane_, earlier) || clocks_.knewAtBegin(of, earlier);
  };
  for (uint32_t i = 0; i < target.step->span; ++i) {
    Cell& cell = memory_.cell(of, Place::Out, target.step->outChunk + i, piece);
    const Access* conflict = write(cell, now_, knows);
    if (conflict != nullptr)
      return race(concat("writes, by the offer on connection ", print(*link.key), ",").c_str(), of,
                  Place::Out, target.step->outChunk + i, piece, *conflict);
  }
  return true;
}

void SymbolMachine::freeMessages(const Step& step, const Operand* inputs) {
  for (uint32_t i = 0; i < step.inputCount; ++i) {
    if (inputs[i].place != Place::Receive) continue;
    Link& link = network_.link(rank(), inputs[i]);
    Reader& reader = network_.reader(rank(), inputs[i]);
    const Message& message = *Network::next(link, reader);
    if (message.referent != Place::Send) clocks_.release(lane_, link.key->from);
    Network::free(link, reader);
  }
}

bool SymbolMachine::fail(const std::string& why) {
  fault_ = concat(nameOf(now_), ": ", why);
  return false;
}

bool SymbolMachine::has(const Cell& cell, int of, Place place, uint32_t chunk) {
  if (Memory::present(cell, place)) return true;
  return fail(concat("uses ", topoccl::nameOf(place), " chunk ", chunk, " of rank ", of, ", which a rank of ",
                     goal_.name, " does not have there"));
}

bool SymbolMachine::race(const char* does, int of, Place place, uint32_t chunk, uint64_t piece,
                         const Access& earlier) {
  return fail(concat(does, " ", topoccl::nameOf(place), " chunk ", chunk, " piece ", piece, " of rank ", of,
                     " while nothing orders that after ", nameOf(earlier)));
}

std::string SymbolMachine::nameOf(const Access& access) const {
  return access.time == 0 ? "nobody" : nameOf(access.lane, access.step);
}

std::string SymbolMachine::nameOf(uint32_t lane, uint32_t step) const {
  const LaneName& name = lanes_[lane];
  if (step == kUserStep) return concat("the user of rank ", name.rank);
  return concat("rank ", name.rank, " ",
                nameOfStep(schedules_[static_cast<size_t>(name.rank)], name.lane, step));
}

}  // namespace topoccl
