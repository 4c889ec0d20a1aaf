#include "schedule/layout.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

#include "base/error.h"

namespace topoccl {
namespace {

// Positions (low, low + size] as a binary tree in order; returns its root and hangs it under `parent`.
// The left part is the largest perfect tree that fits, so `low` is always even and with it every position
// that has children: odd positions are leaves. A tree of `size` positions is floor(log2(size)) deep.
//
//   size 6:         4
//               2       6
//             1   3   5
void growInOrder(std::vector<TreeNode>& tree, int parent, int low, int size,
                 const std::function<int(int)>& rankAt) {
  if (size == 0) return;
  const int left = static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
  const int rank = rankAt(low + left);
  tree[static_cast<size_t>(rank)].parent = parent;
  if (parent >= 0) tree[static_cast<size_t>(parent)].children.push_back(rank);
  growInOrder(tree, rank, low, left - 1, rankAt);
  growInOrder(tree, rank, low + left, size - left, rankAt);
}

std::vector<TreeNode> makeTree(int ranks, const std::function<int(int)>& rankAt) {
  std::vector<TreeNode> tree(static_cast<size_t>(ranks));
  growInOrder(tree, -1, 0, ranks, rankAt);
  for (TreeNode& node : tree) std::sort(node.children.begin(), node.children.end());
  return tree;
}

}  // namespace

Layout flatLayout(int ranks, int channels) {
  if (ranks < 1 || channels < 1)
    throw Error(Code::InvalidArgument, concat("layout of ", ranks, " ranks and ", channels,
                                              " channels: there must be at least one of each"));
  ChannelLayout channel;
  channel.ring.resize(static_cast<size_t>(ranks));
  std::iota(channel.ring.begin(), channel.ring.end(), 0);
  // Ranks at odd positions are leaves. The first tree puts the even ranks there, the second the odd ones:
  // mirrored when the number of ranks is even, else rotated by one.
  channel.trees[0] = makeTree(ranks, [](int position) { return position - 1; });
  channel.trees[1] =
      makeTree(ranks, [ranks](int position) { return ranks % 2 == 0 ? ranks - position : position % ranks; });
  return {ranks, std::vector<ChannelLayout>(static_cast<size_t>(channels), channel)};
}

}  // namespace topoccl
