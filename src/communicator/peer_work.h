// A send or a receive of one rank on its way through the driver.
#pragma once

#include <cstdint>

#include "communicator/call.h"
#include "communicator/member_work.h"

namespace topoccl {

class PeerWork final : public MemberWork {
 public:
  PeerWork(Member& member, const PeerCall& call, const CallDescriptor& descriptor);

  std::optional<Error> obstacle(const BoundSchedule* running, bool stalled) override;

 private:
  OpenSchedule* prepare() override;

  PeerCall call_;
  bool begun_ = false;
  bool peerHadLeft_ = false;  // when obstacle() was last asked ...
  uint64_t progress_ = 0;     // ... and how far it was
};

}  // namespace topoccl
