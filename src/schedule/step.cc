#include "schedule/step.h"

namespace topoccl {

ScheduleView view(const Schedule& schedule) {
  return {schedule.lanes.data(), static_cast<uint32_t>(schedule.lanes.size()), schedule.steps.data(),
          schedule.operands.data()};
}

}  // namespace topoccl
