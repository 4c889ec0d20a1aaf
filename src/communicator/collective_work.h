// A collective call of one rank on its way through the driver.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "executor/driver.h"
#include "kernels/types.h"
#include "transport/node_memory.h"

namespace topoccl {

class Member;
class OpenSchedule;

// What the user asked for. `count` elements of `type` in each buffer; root -1 where there is none.
struct CollectiveCall {
  Collective collective = Collective::AllReduce;
  const void* send = nullptr;
  void* receive = nullptr;
  uint64_t count = 0;
  DataType type = DataType::Float32;
  Operator op = Operator::Sum;
  int root = -1;
  CombineFunction combine = nullptr;  // hostCombine(type, op)
};

class CollectiveWork final : public Work {
 public:
  // `number`: this communicator's how-manieth collective, from 1.
  CollectiveWork(Member& member, const CollectiveCall& call, uint64_t number);

  BoundSchedule* open() override;
  void failed(const BoundSchedule& running) override;
  bool giveUp(const BoundSchedule* running) override;

  const CallDescriptor& descriptor() const { return descriptor_; }

  // Whether nothing has moved for that long, as far as this was asked.
  bool stuck(const BoundSchedule* running, std::chrono::milliseconds limit) const;

 private:
  void setContext(OpenSchedule& open);

  Member* member_;
  CollectiveCall call_;
  CallDescriptor descriptor_;
  bool posted_ = false;
  mutable uint64_t progress_ = 0;                            // when stuck() was last asked ...
  mutable std::chrono::steady_clock::time_point movedAt_{};  // ... and when that was new
};

// "all_reduce #17 float32 x 1000 sum": how messages name a call.
std::string describe(const CallDescriptor& call);

}  // namespace topoccl
