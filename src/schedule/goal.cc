#include "schedule/goal.h"

namespace topoccl {

Goal allReduceGoal(int ranks) {
  return {"all-reduce", true, [ranks](int, uint32_t chunk) { return Wanted{0, ranks, chunk}; }};
}

}  // namespace topoccl
