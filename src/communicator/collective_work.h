// A collective call of one rank on its way through the driver.
#pragma once

#include <cstdint>
#include <string>

#include "communicator/call.h"
#include "communicator/member_work.h"
#include "transport/node_memory.h"

namespace topoccl {

class CollectiveWork final : public MemberWork {
 public:
  // `number`: this communicator's how-manieth collective, from 1.
  CollectiveWork(Member& member, const CollectiveCall& call, uint64_t number);

  std::string text() const override;
  std::optional<Error> obstacle(const BoundSchedule* running, bool stalled) override;

 private:
  OpenSchedule* prepare() override;
  void setContext(OpenSchedule& open);
  void setReduction();

  CollectiveCall call_;
  CallDescriptor descriptor_;
  bool posted_ = false;
};

// "all_reduce #17 float32 x 1000 sum"
std::string describe(const CallDescriptor& call);

}  // namespace topoccl
