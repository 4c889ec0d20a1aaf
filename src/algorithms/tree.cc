// Double binary tree all-reduce: one chunk per tree. Sums go up, the result comes down.
//
//   leaf               up:    in -> parent
//   inner rank         up:    child + in + child -> parent             terms ascend by rank
//   root               both:  child + in + child -> out, children
//   every other rank   down:  parent -> out, children
//
// Up and down are lanes of their own, so that the next piece can go up while this one comes down.
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

}  // namespace

Schedule emitTreeAllReduce(const Layout& layout, int rank) {
  checkRank(layout, rank);
  if (layout.ranks == 1) return emitAlone();
  const auto channels = static_cast<uint32_t>(layout.channels.size());
  ScheduleBuilder builder(layout.ranks, rank, 2 * channels);
  for (uint32_t channel = 0; channel < channels; ++channel)
    for (int tree = 0; tree < 2; ++tree)
      emitTree(builder, layout.channels[channel].trees[tree][static_cast<size_t>(rank)], rank,
               static_cast<int>(channel), tree);
  return builder.take();
}

}  // namespace topoccl
