// A send or a receive of one rank on its way through the driver.
#pragma once

#include <cstdint>
#include <string>

#include "communicator/call.h"
#include "communicator/member_work.h"

namespace topoccl {

class PeerWork final : public MemberWork {
 public:
  // `number`: the how-manieth call to this peer in this direction, from 1.
  PeerWork(Member& member, const PeerCall& call, uint64_t number);

  std::string text() const override;
  std::optional<Error> obstacle(const BoundSchedule* running, bool stalled) override;

 private:
  OpenSchedule* prepare() override;

  PeerCall call_;
  uint64_t number_;
  bool peerHadLeft_ = false;  // when obstacle() was last asked ...
  uint64_t progress_ = 0;     // ... and how far it was
};

}  // namespace topoccl
