// Double binary trees: one chunk per tree.
//
// All-reduce: sums go up, the result comes down.
//
//   leaf               up:    in -> parent
//   inner rank         up:    child + in + child -> parent             terms ascend by rank
//   root               both:  child + in + child -> out, children
//   every other rank   down:  parent -> out, children
//
// Up and down are lanes of their own, so that the next piece can go up while this one comes down.
//
// Reduce is the way up and broadcast the way down, of the same trees hung from the collective's root: every
// rank keeps its neighbours, and those on the way from the old root to the new one turn round.
#include <algorithm>

#include "algorithms/algorithms.h"
#include "algorithms/emit.h"

namespace topoccl {
namespace {

// Own data and the children's sums, ascending by rank.
std::vector<Operand> terms(ScheduleBuilder& builder, const TreeNode& node, int rank, int channel, int tag) {
  std::vector<Operand> operands;
  for (const int child : node.children)
    if (child < rank) operands.push_back(builder.receive(child, channel, tag));
  operands.push_back(kIn);
  for (const int child : node.children)
    if (child > rank) operands.push_back(builder.receive(child, channel, tag));
  return operands;
}

std::vector<Operand> results(ScheduleBuilder& builder, const TreeNode& node, int channel, int tag) {
  std::vector<Operand> operands{kOut};
  for (const int child : node.children) operands.push_back(builder.send(child, channel, tag));
  return operands;
}

void emitTree(ScheduleBuilder& builder, const TreeNode& node, int rank, int channel, int tree) {
  const auto chunk = static_cast<uint32_t>(2 * channel + tree);
  builder.lane();
  if (node.parent < 0) {
    const std::vector<Operand> inputs = terms(builder, node, rank, channel, tree);
    builder.step(inputs, results(builder, node, channel, tree), chunk, 1, true);
    return;
  }
  const std::vector<Operand> inputs = terms(builder, node, rank, channel, tree);
  builder.step(inputs, {builder.send(node.parent, channel, tree)}, chunk);
  builder.lane();
  const Operand parent = builder.receive(node.parent, channel, tree);
  builder.step({parent}, results(builder, node, channel, tree), chunk);
}

// The node of `rank` when the tree hangs from `root`.
TreeNode hangFrom(const std::vector<TreeNode>& tree, int root, int rank) {
  TreeNode node = tree[static_cast<size_t>(rank)];
  // The neighbour towards the root, if it is below: the rank before `rank` on the way up from the root.
  int below = root;
  while (below != rank && tree[static_cast<size_t>(below)].parent != rank) {
    below = tree[static_cast<size_t>(below)].parent;
    if (below < 0) return node;  // the way up misses `rank`: its parent leads to the root
  }
  if (node.parent >= 0) node.children.push_back(node.parent);
  node.parent = -1;
  if (below != rank) {
    node.parent = below;
    node.children.erase(std::find(node.children.begin(), node.children.end(), below));
  }
  std::sort(node.children.begin(), node.children.end());
  return node;
}

// Calls emit(builder, node, channel, tree, chunk) for a lane per channel and tree.
template <class Emit>
Schedule emitRooted(const Layout& layout, int rank, int root, Emit&& emit) {
  ScheduleBuilder builder(layout.ranks, rank, 2 * static_cast<uint32_t>(layout.channels.size()));
  for (size_t channel = 0; channel < layout.channels.size(); ++channel)
    for (int tree = 0; tree < 2; ++tree) {
      builder.lane();
      emit(builder, hangFrom(layout.channels[channel].trees[tree], root, rank), static_cast<int>(channel),
           tree, static_cast<uint32_t>(2 * static_cast<int>(channel) + tree));
    }
  return builder.take();
}

}  // namespace

Schedule emitTreeAllReduce(const Layout& layout, int rank, int) {
  checkRank(layout, rank);
  if (layout.ranks == 1) return emitAlone(true);
  const auto channels = static_cast<uint32_t>(layout.channels.size());
  ScheduleBuilder builder(layout.ranks, rank, 2 * channels);
  for (uint32_t channel = 0; channel < channels; ++channel)
    for (int tree = 0; tree < 2; ++tree)
      emitTree(builder, layout.channels[channel].trees[tree][static_cast<size_t>(rank)], rank,
               static_cast<int>(channel), tree);
  return builder.take();
}

Schedule emitTreeBroadcast(const Layout& layout, int rank, int root) {
  checkRank(layout, rank, root);
  if (layout.ranks == 1) return emitAlone(false);
  return emitRooted(layout, rank, root,
                    [](ScheduleBuilder& lane, const TreeNode& node, int channel, int tree, uint32_t chunk) {
                      const Operand source = node.parent < 0 ? kIn : lane.receive(node.parent, channel, tree);
                      lane.step({source}, results(lane, node, channel, tree), chunk);
                    });
}

Schedule emitTreeReduce(const Layout& layout, int rank, int root) {
  checkRank(layout, rank, root);
  if (layout.ranks == 1) return emitAlone(true);
  return emitRooted(
      layout, rank, root,
      [rank](ScheduleBuilder& lane, const TreeNode& node, int channel, int tree, uint32_t chunk) {
        const bool isRoot = node.parent < 0;
        const std::vector<Operand> inputs = terms(lane, node, rank, channel, tree);
        lane.step(inputs, {isRoot ? kOut : lane.send(node.parent, channel, tree)}, chunk, 1, isRoot);
      });
}

}  // namespace topoccl
