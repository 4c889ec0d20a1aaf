#include "algorithms/emit.h"

#include <algorithm>

#include "base/error.h"

namespace topoccl {

void checkRank(const Layout& layout, int rank, int root) {
  const auto isRank = [&](int value) { return value >= 0 && value < layout.ranks; };
  if (!isRank(rank) || !isRank(root) || layout.channels.empty())
    throw Error(Code::InvalidArgument,
                concat("schedule of rank ", rank, ", root ", root, ", in a layout of ", layout.ranks,
                       " ranks and ", layout.channels.size(), " channels"));
}

Schedule emitAlone(bool final) {
  ScheduleBuilder builder(1, 0, 1);
  builder.step({kIn}, {kOut}, 0, 1, final);
  return builder.take();
}

std::vector<int> othersFrom(int ranks, int rank) {
  std::vector<int> others;
  for (int i = 1; i < ranks; ++i) others.push_back((rank + i) % ranks);
  return others;
}

std::vector<int> othersOf(int ranks, int rank) {
  std::vector<int> others;
  for (int other = 0; other < ranks; ++other)
    if (other != rank) others.push_back(other);
  return others;
}

uint32_t blockChunk(const Layout& layout, int channel, int block) {
  return static_cast<uint32_t>(channel * layout.ranks + block);
}

ScheduleBuilder blockBuilder(const Layout& layout, int rank) {
  const auto blocks = static_cast<uint32_t>(layout.ranks);
  return {layout.ranks, rank, blocks * static_cast<uint32_t>(layout.channels.size()), blocks};
}

std::vector<BlockRun> blockRuns(int ranks, int first, int count) {
  std::vector<BlockRun> runs;
  first %= ranks;
  const int untilEnd = std::min(count, ranks - first);
  if (untilEnd > 0) runs.push_back({first, untilEnd});
  if (count > untilEnd) runs.push_back({0, count - untilEnd});
  return runs;
}

}  // namespace topoccl
