#include "schedule/step.h"

#include <algorithm>

namespace topoccl {

uint32_t maxSpan(const Schedule& schedule) {
  uint32_t span = 1;
  for (const Step& step : schedule.steps) span = std::max(span, step.span);
  return span;
}

ScheduleView view(const Schedule& schedule) {
  return {schedule.lanes.data(), static_cast<uint32_t>(schedule.lanes.size()), schedule.steps.data(),
          schedule.operands.data()};
}

}  // namespace topoccl
