#include "communicator/collective_work.h"

#include <bit>

#include "algorithms/catalog.h"
#include "base/error.h"
#include "communicator/member.h"
#include "schedule/goal.h"

namespace topoccl {

namespace {

// Results of all ranks of a node together from which on they are stored past the caches.
constexpr uint64_t kStreamBytes = uint64_t{4} << 20;

}  // namespace

CollectiveWork::CollectiveWork(Member& member, const CollectiveCall& call, const CallDescriptor& descriptor)
    : MemberWork(member, descriptor), call_(call) {}

OpenSchedule* CollectiveWork::prepare() {
  if (!posted_) {
    member().throwIfFailed();
    member().watch().begin(descriptor());
    posted_ = true;
  }
  OpenSchedule* const schedule = whenReady(member().schedules().open(call_));
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
  context.call = descriptor().history;
  setReduction();
  if (schedule.scratchChunks != 0) context.scratch = member().scratch(blockBytes * schedule.blocks);
  context.streamed =
      blockBytes * blocksOf(call_.collective, member().ranks()) * static_cast<uint64_t>(member().ranks()) >=
      kStreamBytes;
  const bool inPlace = context.in == context.out;
  const bool mayRefer = !inPlace || !schedule.copyInPlace;
  if (member().settings().references) {
    if (mayRefer) context.referenceBytes = kDirectBytes;
    context.offerBytes = kDirectBytes;
  }
  // Who reduces would read what was fetched from a slot all the same, and where data flows one way slots keep
  // two cores busy.
  if (mayRefer && !reduces(call_.collective) && !hasRoot(call_.collective))
    context.attachBytes = kAttachBytes;
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
  if (std::optional<Error> disagreement = member().watch().disagreement()) return disagreement;
  return member().watch().leftBefore(descriptor());
}

}  // namespace topoccl
