#include "algorithms/emit.h"

#include <algorithm>

#include "base/error.h"

namespace topoccl {

void checkRank(const Layout& layout, int rank) {
  if (rank < 0 || rank >= layout.ranks || layout.channels.empty())
    throw Error(Code::InvalidArgument, concat("schedule of rank ", rank, " in a layout of ", layout.ranks,
                                              " ranks and ", layout.channels.size(), " channels"));
}

Schedule emitAlone() {
  ScheduleBuilder builder(1, 0, 1);
  builder.step({kIn}, {kOut}, 0, 1, true);
  return builder.take();
}

std::vector<int> othersFrom(int ranks, int rank) {
  std::vector<int> others;
  for (int i = 1; i < ranks; ++i) others.push_back((rank + i) % ranks);
  return others;
}

std::vector<int> othersOf(int ranks, int rank) {
  std::vector<int> others = othersFrom(ranks, rank);
  std::sort(others.begin(), others.end());
  return others;
}

}  // namespace topoccl
