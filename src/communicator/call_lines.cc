#include "communicator/call_lines.h"

#include <algorithm>

namespace topoccl {

void CallLines::begin(size_t calls) {
  used_ = 0;
  works_.clear();
  works_.reserve(calls);
}

CallLines::Line& CallLines::lineOf(const Key& key) {
  const auto end = lines_.begin() + static_cast<ptrdiff_t>(used_);
  const auto found = std::find_if(lines_.begin(), end, [&](const Line& it) { return it.key == key; });
  if (found != end) return *found;
  if (used_ == lines_.size()) lines_.emplace_back();
  Line& line = lines_[used_++];
  line.key = key;
  line.works.clear();
  return line;
}

void CallLines::addQueues(std::vector<WorkQueue>& queues) const {
  for (size_t i = 0; i < used_; ++i) queues.push_back({lines_[i].works});
}

}  // namespace topoccl
