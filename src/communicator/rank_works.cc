#include "communicator/rank_works.h"

#include <algorithm>

namespace topoccl {

RankWorks::RankWorks(Communicator& communicator)
    : communicator_(&communicator),
      operation_(std::in_place, communicator),
      member_(&operation_->member()),
      memory_(member_->memory()) {
  member_->throwIfUnusable();
}

RankWorks::Line& RankWorks::lineOf(const Key& key) {
  const auto found =
      std::find_if(lines_.begin(), lines_.end(), [&](const Line& it) { return it.key == key; });
  return found != lines_.end() ? *found : lines_.emplace_back(Line{key});
}

void RankWorks::addQueues(std::vector<WorkQueue>& queues) {
  for (Line& line : lines_) {
    for (auto& work : line.works)
      line.pointers.push_back(std::visit([](auto& it) -> Work* { return &it; }, work));
    queues.push_back({line.pointers});
  }
}

void RankWorks::drop() {
  dropped_ = true;
  letGo();
}

}  // namespace topoccl
