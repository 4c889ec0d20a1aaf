#include "communicator/peer_work.h"

#include "communicator/describe_call.h"
#include "communicator/member.h"

namespace topoccl {

PeerWork::PeerWork(Member& member, const PeerCall& call, const CallDescriptor& descriptor)
    : MemberWork(member, descriptor), call_(call) {}

OpenSchedule* PeerWork::prepare() {
  member().throwIfFailed();
  if (!begun_) {
    member().watch().begin(descriptor());
    begun_ = true;
  }
  OpenSchedule* const schedule = whenReady(member().schedules().open(call_));
  if (schedule == nullptr) return nullptr;
  setBuffers(*schedule, call_.count, call_.type);
  context.in = static_cast<const unsigned char*>(call_.buffer);
  context.out = static_cast<unsigned char*>(call_.buffer);
  // Types may differ as long as sizes agree.
  context.call = peerFingerprint(descriptor().number, call_.count * context.elementBytes);
  if (member().settings().references) context.referenceBytes = context.offerBytes = kDirectBytes;
  context.attachBytes = kAttachBytes;
  return schedule;
}

std::optional<Error> PeerWork::obstacle(const BoundSchedule* running, bool stalled) {
  if (!stalled || member().poisoned()) return std::nullopt;
  const uint64_t progress = progressOf(running);
  // What the peer did before it left may have come since the last look.
  const bool stands = peerHadLeft_ && progress == progress_;
  peerHadLeft_ = member().node().hasLeft(call_.peer);
  progress_ = progress;
  if (!stands) return std::nullopt;
  return Error(Code::RemoteError, concat("rank ", member().rank(), ": rank ", call_.peer,
                                         " destroyed its communicator before ", text(), " was complete"));
}

}  // namespace topoccl
