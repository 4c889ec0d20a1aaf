#include "executor/bound_schedule.h"

#include <algorithm>
#include <utility>

namespace topoccl {

namespace {

// Addresses the widest step needs: one per operand, and one per reader that may have offered a destination.
size_t widestStep(const Schedule& schedule, const std::vector<Endpoint*>& endpoints) {
  size_t widest = 1;
  for (const Step& step : schedule.steps) {
    size_t addresses = step.inputCount + step.outputCount;
    for (uint32_t i = 0; i < step.outputCount; ++i) {
      const Operand& output = schedule.operands[step.firstOperand + step.inputCount + i];
      if (output.place == Place::Send)
        addresses += endpoints[output.connection]->writer.ring().shape().readers;
    }
    widest = std::max(widest, addresses);
  }
  return widest;
}

// A step that only stores what it received may have it written to the destination right away.
bool onlyStores(const Schedule& schedule, const Step& step) {
  return step.inputCount == 1 && step.outputCount == 1 && !step.final && step.span == 1 &&
         schedule.operands[step.firstOperand + 1].place == Place::Out && step.inChunk == step.outChunk;
}

}  // namespace

BoundSchedule::BoundSchedule(Schedule schedule, std::vector<Endpoint*> endpoints)
    : schedule_(std::move(schedule)),
      view_(view(schedule_)),
      endpoints_(std::move(endpoints)),
      cursors_(schedule_.lanes.size()),
      laneDone_(schedule_.lanes.size()),
      inputs_(widestStep(schedule_, endpoints_)),
      outputs_(inputs_.size()),
      machine_({}, endpoints_.data(), inputs_.data(), outputs_.data()) {
  planOffers();
  planReferences();
}

// By what the steps send on: a rank may be at both ends of a connection, with a schedule for each.
void BoundSchedule::planReferences() {
  std::vector<uint8_t> sends(endpoints_.size());
  for (const Operand& operand : schedule_.operands)
    if (operand.place == Place::Send) sends[operand.connection] = 1;
  for (uint32_t i = 0; i < endpoints_.size(); ++i)
    if (sends[i] != 0) referencing_.push_back(i);
}

void BoundSchedule::planOffers() {
  offerChunks_.resize(endpoints_.size());
  for (const Step& step : schedule_.steps) {
    for (uint32_t i = 0; i < step.inputCount; ++i) {
      const Operand& input = schedule_.operands[step.firstOperand + i];
      if (input.place != Place::Receive || !endpoints_[input.connection]->direct) continue;
      offerChunks_[input.connection].push_back(onlyStores(schedule_, step) ? step.outChunk : kNoOffer);
    }
  }
  for (uint32_t i = 0; i < endpoints_.size(); ++i) {
    const auto& chunks = offerChunks_[i];
    if (!chunks.empty()) receiving_.push_back(i);
    if (std::all_of(chunks.begin(), chunks.end(), [](uint32_t chunk) { return chunk == kNoOffer; })) continue;
    offering_.push_back(i);
  }
}

void BoundSchedule::start(const CallContext& context, CombineFunction combine) {
  machine_.start(context, {combine});
  std::fill(cursors_.begin(), cursors_.end(), LaneCursor{});
  std::fill(laneDone_.begin(), laneDone_.end(), uint8_t{0});
  lanesLeft_ = static_cast<uint32_t>(cursors_.size());
  // Other schedules use the same endpoints between calls.
  for (const uint32_t i : receiving_) endpoints_[i]->offerCount = 0;
  for (const uint32_t i : offering_) {
    Endpoint& endpoint = *endpoints_[i];
    endpoint.offerChunks = offerChunks_[i].data();
    endpoint.offerCount = static_cast<uint32_t>(offerChunks_[i].size());
    endpoint.offerIndex = 0;
    endpoint.offerPiece = 0;
    endpoint.offered = endpoint.reader.next();
    machine_.offerAhead(endpoint, endpoint.reader.next());
  }
}

Progress BoundSchedule::advance() {
  // One step at a time where lanes run through many pieces: a lane that went on as long as it can would keep
  // the others, and through them the peers, waiting for it.
  const uint32_t limit = machine_.pieces() > 1 ? 1 : UINT32_MAX;
  bool moved = false;
  for (uint32_t lane = 0; lane < cursors_.size(); ++lane) {
    if (laneDone_[lane] != 0) continue;
    const Advance result = topoccl::advance(view_, lane, cursors_[lane], machine_, limit);
    moved |= result.steps != 0;
    if (result.state == LaneState::Failed) return Progress::Failed;
    if (result.state == LaneState::Done) {
      laneDone_[lane] = 1;
      --lanesLeft_;
      moved = true;
    }
  }
  if (lanesLeft_ == 0) return finishing();
  return moved ? Progress::Moved : Progress::Waiting;
}

// The caller's buffers are its own again only when nobody reads them by reference any more.
Progress BoundSchedule::finishing() {
  for (const uint32_t i : referencing_) {
    Endpoint& endpoint = *endpoints_[i];
    if (endpoint.referencedUpTo == 0) continue;
    if (!endpoint.writer.freedUpTo(endpoint.referencedUpTo)) return Progress::Waiting;
    endpoint.referencedUpTo = 0;
  }
  return Progress::Done;
}

uint64_t BoundSchedule::progress() const {
  uint64_t steps = 0;
  for (size_t lane = 0; lane < cursors_.size(); ++lane)
    steps += cursors_[lane].piece * schedule_.lanes[lane].stepCount + cursors_[lane].step;
  return steps;
}

BoundSchedule::Wait BoundSchedule::waiting() const {
  Wait wait;
  for (uint32_t lane = 0; lane < cursors_.size(); ++lane) {
    if (laneDone_[lane] != 0) continue;
    const LaneCursor& cursor = cursors_[lane];
    const Lane& program = schedule_.lanes[lane];
    if (cursor.step >= program.stepCount) continue;
    const Step& step = schedule_.steps[program.firstStep + cursor.step];
    if (cursor.operand >= step.inputCount + step.outputCount) continue;
    const Operand& operand = schedule_.operands[step.firstOperand + cursor.operand];
    const uint32_t connection = operand.connection;
    const SlotWriter& writer = endpoints_[connection]->writer;
    const int peer = operand.place == Place::Receive
                         ? schedule_.connections[connection].from
                         : slowestReader(connection, writer.next() + 1 - writer.ring().shape().slots);
    return {lane, cursor.step, cursor.piece, operand.place, connection, peer};
  }
  wait.place = Place::Send;
  for (const uint32_t i : referencing_) {
    if (endpoints_[i]->referencedUpTo == 0) continue;
    if (endpoints_[i]->writer.freedUpTo(endpoints_[i]->referencedUpTo)) continue;
    wait.connection = i;
    wait.peer = slowestReader(i, endpoints_[i]->referencedUpTo);
  }
  return wait;
}

// A reader that has not freed all messages before `message`.
int BoundSchedule::slowestReader(uint32_t connection, uint64_t message) const {
  const std::vector<int>& readers = schedule_.connections[connection].readers;
  return readers[endpoints_[connection]->writer.slowest(message)];
}

const Doorbell* BoundSchedule::blocker() const {
  if (endpoints_.empty()) return nullptr;
  const Endpoint& endpoint = *endpoints_[waiting().connection];
  return endpoint.bellCount == 0 ? nullptr : endpoint.bells[0];
}

}  // namespace topoccl
