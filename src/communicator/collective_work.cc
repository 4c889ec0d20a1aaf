#include "communicator/collective_work.h"

#include <bit>

#include "algorithms/catalog.h"
#include "base/error.h"
#include "communicator/member.h"
#include "kernels/mix.h"
#include "schedule/goal.h"

namespace topoccl {

namespace {

// Results of all ranks of a node together from which on they are stored past the caches.
constexpr uint64_t kStreamBytes = uint64_t{4} << 20;
// How a descriptor spells the pre-multiplied sum: the first value that is no Operator.
constexpr uint8_t kScaledSum = kOperatorCount;

uint64_t fingerprint(const CallDescriptor& call) {
  uint64_t hash = mix(call.number, call.count);
  hash = mix(hash, uint64_t{call.collective} << 16 | uint64_t{call.type} << 8 | call.op);
  return mix(hash, static_cast<uint64_t>(call.root));
}

CallDescriptor descriptorOf(const CollectiveCall& call, uint64_t number) {
  CallDescriptor descriptor;
  descriptor.number = number;
  descriptor.count = call.count;
  descriptor.collective = static_cast<uint8_t>(call.collective);
  descriptor.type = static_cast<uint8_t>(call.type);
  if (reduces(call.collective))
    descriptor.op = call.reduction.scaled ? kScaledSum : static_cast<uint8_t>(call.reduction.op);
  descriptor.root = call.root;
  return descriptor;
}

}  // namespace

CollectiveWork::CollectiveWork(Member& member, const CollectiveCall& call, uint64_t number)
    : MemberWork(member), call_(call), descriptor_(descriptorOf(call, number)) {}

OpenSchedule* CollectiveWork::prepare() {
  if (!posted_) {
    member().throwIfFailed();
    member().post(descriptor_);
    posted_ = true;
  }
  OpenSchedule* const schedule = member().schedules().open(call_);
  if (schedule != nullptr) setContext(*schedule);
  return schedule;
}

void CollectiveWork::setContext(OpenSchedule& open) {
  const Schedule& schedule = open.schedule();
  setBuffers(open, call_.count, call_.type);
  const bool isRoot = call_.root == member().rank();
  const uint64_t blockBytes = call_.count * context.elementBytes;
  const int rank = member().rank();
  const auto whole = [&](const void* buffer, Place place) {
    return wholeAddress(buffer, presenceOf(call_.collective, place, isRoot), rank, blockBytes);
  };
  context.in = std::bit_cast<const unsigned char*>(whole(call_.send, Place::In));
  context.out = std::bit_cast<unsigned char*>(whole(call_.receive, Place::Out));
  context.call = fingerprint(descriptor_);
  setReduction();
  if (schedule.scratchChunks != 0) context.scratch = member().scratch(blockBytes * schedule.blocks);
  context.streamed =
      blockBytes * blocksOf(call_.collective, member().ranks()) * static_cast<uint64_t>(member().ranks()) >=
      kStreamBytes;
  const bool inPlace = context.in == context.out;
  if (member().settings().references) {
    if (!inPlace || !schedule.copyInPlace) context.referenceBytes = kDirectBytes;
    context.offerBytes = kDirectBytes;
  }
}

void CollectiveWork::setReduction() {
  if (!reduces(call_.collective)) return;
  const Reduction& reduction = call_.reduction;
  const auto ranks = static_cast<uint32_t>(member().ranks());
  combine = hostCombine(call_.type, reduction.op);
  context.scaled = reduction.scaled;
  context.scale = reduction.scalar == nullptr ? reduction.scale : elementScale(call_.type, reduction.scalar);
  if (reduction.op != Operator::Avg) return;
  if (isFloating(call_.type)) {
    context.scaled = true;
    context.scale = averageScale(call_.type, ranks);
  } else {
    context.divisor = ranks;
  }
}

std::optional<Error> CollectiveWork::obstacle(const BoundSchedule*, bool) {
  return member().disagreement(descriptor_);
}

std::string CollectiveWork::text() const {
  return describe(descriptor_);
}

std::string describe(const CallDescriptor& call) {
  const auto collective = static_cast<Collective>(call.collective);
  std::string text = concat(name(collective), " #", call.number, ' ', name(static_cast<DataType>(call.type)),
                            " x ", call.count);
  if (reduces(collective))
    text += concat(' ', call.op == kScaledSum ? "pre-multiplied sum" : name(static_cast<Operator>(call.op)));
  if (call.root >= 0) text += concat(" root ", call.root);
  return text;
}

}  // namespace topoccl
