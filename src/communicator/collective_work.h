// A collective call of one rank on its way through the driver.
#pragma once

#include <cstdint>

#include "communicator/call.h"
#include "communicator/member_work.h"

namespace topoccl {

class CollectiveWork final : public MemberWork {
 public:
  CollectiveWork(Member& member, const CollectiveCall& call, const CallDescriptor& descriptor);

  std::optional<Error> obstacle(const BoundSchedule* running, bool stalled) override;

 private:
  OpenSchedule* prepare() override;
  void setContext(OpenSchedule& open);
  void setReduction();

  CollectiveCall call_;
  bool posted_ = false;
};

}  // namespace topoccl
