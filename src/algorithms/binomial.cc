// Gather and scatter on a binomial tree. Counted from the root, rank v looks after the ranks [v, v + size)
// with size the lowest bit set in v (all of them for the root); its children are v + 1, v + 2, v + 4, ...
//
//   scatter, v = 2 of 6      from 0 -> scratch[2-3]              its own block and its child's
//                            scratch[3] -> 3
//                            scratch[2] -> out[2]
//   gather, v = 2 of 6       in[2] -> scratch[2]
//                            from 3 -> scratch[3]
//                            scratch[2-3] -> 0
//
// Blocks wrap around behind the last rank: a bundle is cut there. Scratch chunks have the numbers of blocks.
// The largest children come first in a scatter, last in a gather: they have the longest way.
#include <algorithm>

#include "algorithms/algorithms.h"
#include "algorithms/emit.h"

namespace topoccl {
namespace {

// Another connection than a full mesh's: other slots.
constexpr int kBundleTag = 2;

class Node {
 public:
  Node(ScheduleBuilder& builder, const Layout& layout, int rank, int root, int channel)
      : builder_(builder),
        layout_(layout),
        rank_(rank),
        root_(root),
        channel_(channel),
        place_((rank - root + layout.ranks) % layout.ranks) {
    builder_.lane();
  }

  void scatter() {
    if (!isRoot())
      for (const BlockRun run : bundle(place_, size(place_)))
        step({builder_.receive(rankAt(parent()), channel_, kBundleTag)}, {kScratch}, run);
    std::vector<int> all = children();
    std::reverse(all.begin(), all.end());
    for (const int child : all)
      for (const BlockRun run : bundle(child, size(child)))
        step({isRoot() ? kIn : kScratch}, {builder_.send(rankAt(child), channel_, kBundleTag)}, run);
    step({isRoot() ? kIn : kScratch}, {kOut}, {rank_, 1});
  }

  void gather() {
    step({kIn}, {isRoot() ? kOut : kScratch}, {rank_, 1});
    for (const int child : children())
      for (const BlockRun run : bundle(child, size(child)))
        step({builder_.receive(rankAt(child), channel_, kBundleTag)}, {isRoot() ? kOut : kScratch}, run);
    if (isRoot()) return;
    for (const BlockRun run : bundle(place_, size(place_)))
      step({kScratch}, {builder_.send(rankAt(parent()), channel_, kBundleTag)}, run);
  }

 private:
  bool isRoot() const { return place_ == 0; }
  int rankAt(int place) const { return (place + root_) % layout_.ranks; }
  int parent() const { return place_ & (place_ - 1); }

  // How many places from `place` on it looks after.
  int size(int place) const {
    return place == 0 ? layout_.ranks : std::min(place & -place, layout_.ranks - place);
  }

  std::vector<int> children() const {
    std::vector<int> all;
    for (int bit = 1; bit < size(place_); bit *= 2) all.push_back(place_ + bit);
    return all;
  }

  std::vector<BlockRun> bundle(int place, int count) const {
    return blockRuns(layout_.ranks, place + root_, count);
  }

  void step(const std::vector<Operand>& inputs, const std::vector<Operand>& outputs, BlockRun run) {
    builder_.step(inputs, outputs, blockChunk(layout_, channel_, run.first),
                  static_cast<uint32_t>(run.count));
  }

  ScheduleBuilder& builder_;
  const Layout& layout_;
  int rank_;
  int root_;
  int channel_;
  int place_;
};

// The largest bundle of any rank is that of a child of the root.
uint32_t largestBundle(int ranks) {
  int largest = 0;
  for (int place = 1; place < ranks; place *= 2) largest = std::max(largest, std::min(place, ranks - place));
  return static_cast<uint32_t>(largest);
}

template <class Emit>
Schedule emitBundles(const Layout& layout, int rank, int root, Emit&& emit) {
  checkRank(layout, rank, root);
  if (layout.ranks == 1) return emitAlone(false);
  ScheduleBuilder builder = blockBuilder(layout, rank);
  builder.slotChunks(largestBundle(layout.ranks));
  builder.scratch(static_cast<uint32_t>(layout.ranks) * static_cast<uint32_t>(layout.channels.size()));
  for (size_t channel = 0; channel < layout.channels.size(); ++channel) {
    Node node(builder, layout, rank, root, static_cast<int>(channel));
    emit(node);
  }
  return builder.take();
}

}  // namespace

Schedule emitTreeGather(const Layout& layout, int rank, int root) {
  return emitBundles(layout, rank, root, [](Node& node) { node.gather(); });
}

Schedule emitTreeScatter(const Layout& layout, int rank, int root) {
  return emitBundles(layout, rank, root, [](Node& node) { node.scatter(); });
}

}  // namespace topoccl
