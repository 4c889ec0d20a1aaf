#include "communicator/rank_works.h"

namespace topoccl {

RankWorks::RankWorks(Communicator& communicator)
    : communicator_(&communicator),
      operation_(std::in_place, communicator),
      member_(&operation_->member()),
      memory_(member_->memory()) {
  member_->throwIfUnusable();
}

void RankWorks::drop() {
  dropped_ = true;
  letGo();
}

}  // namespace topoccl
