#include "communicator/collective_work.h"

#include <exception>

#include "algorithms/catalog.h"
#include "base/error.h"
#include "communicator/member.h"
#include "kernels/mix.h"

namespace topoccl {

namespace {

// Below this a message is copied sooner than its reader can say that it is done with a reference.
constexpr uint64_t kDirectBytes = 16 << 10;
// Results of all ranks of a node together from which on they are stored past the caches.
constexpr uint64_t kStreamBytes = uint64_t{4} << 20;

uint64_t fingerprint(const CallDescriptor& call) {
  uint64_t hash = mix(call.number, call.count);
  hash = mix(hash, uint64_t{call.collective} << 16 | uint64_t{call.type} << 8 | call.op);
  return mix(hash, static_cast<uint64_t>(call.root));
}

}  // namespace

CollectiveWork::CollectiveWork(Member& member, const CollectiveCall& call, uint64_t number)
    : member_(&member), call_(call) {
  descriptor_.number = number;
  descriptor_.count = call.count;
  descriptor_.collective = static_cast<uint8_t>(call.collective);
  descriptor_.type = static_cast<uint8_t>(call.type);
  descriptor_.op = static_cast<uint8_t>(call.op);
  descriptor_.root = call.root;
}

BoundSchedule* CollectiveWork::open() {
  if (!posted_) {
    member_->throwIfFailed();
    member_->post(descriptor_);
    posted_ = true;
  }
  try {
    OpenSchedule* const schedule = member_->open(call_);
    if (schedule == nullptr) return nullptr;
    setContext(*schedule);
    return &schedule->bound();
  } catch (const Error& error) {
    // Peers wait for this rank's part.
    member_->fail(error.code(), concat("rank ", member_->rank(), ": ", error.what()));
    throw;
  } catch (const std::exception& error) {
    member_->fail(Code::SystemError, error.what());
    throw;
  }
}

void CollectiveWork::setContext(OpenSchedule& open) {
  const Schedule& schedule = open.schedule();
  const auto ranks = static_cast<uint32_t>(member_->ranks());
  combine = call_.combine;
  context = {};
  context.in = static_cast<const unsigned char*>(call_.send);
  context.out = static_cast<unsigned char*>(call_.receive);
  context.elementBytes = static_cast<uint32_t>(elementBytes(call_.type));
  context.map = open.chunkMap(call_.count, context.elementBytes);
  context.call = fingerprint(descriptor_);
  if (call_.op == Operator::Avg && isFloating(call_.type)) {
    context.scaled = true;
    context.scale = averageScale(call_.type, ranks);
  } else if (call_.op == Operator::Avg) {
    context.divisor = ranks;
  }
  const uint64_t bytes = call_.count * context.elementBytes;
  if (schedule.scratchChunks != 0) context.scratch = member_->scratch(bytes);
  context.streamed = bytes * ranks >= kStreamBytes;
  const bool inPlace = call_.send == call_.receive;
  if (member_->settings().references) {
    if (!inPlace || !schedule.copyInPlace) context.referenceBytes = kDirectBytes;
    context.offerBytes = kDirectBytes;
  }
  context.guard = member_->guard();
}

void CollectiveWork::failed(const BoundSchedule& running) {
  member_->slotMismatch(*this, running);
}

bool CollectiveWork::giveUp(const BoundSchedule* running) {
  return member_->mustGiveUp(*this, running);
}

bool CollectiveWork::stuck(const BoundSchedule* running, std::chrono::milliseconds limit) const {
  const auto now = std::chrono::steady_clock::now();
  const uint64_t progress = running == nullptr ? 0 : running->progress() + 1;
  if (movedAt_ == std::chrono::steady_clock::time_point{} || progress != progress_) movedAt_ = now;
  progress_ = progress;
  return now - movedAt_ >= limit;
}

std::string describe(const CallDescriptor& call) {
  std::string text = concat(name(static_cast<Collective>(call.collective)), " #", call.number, ' ',
                            name(static_cast<DataType>(call.type)), " x ", call.count, ' ',
                            name(static_cast<Operator>(call.op)));
  if (call.root >= 0) text += concat(" root ", call.root);
  return text;
}

}  // namespace topoccl
