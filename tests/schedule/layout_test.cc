#include "schedule/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace topoccl {
namespace {

// Edges from the rank up to the root, or more than there are ranks if it never gets there.
int depth(const std::vector<TreeNode>& tree, int rank) {
  int edges = 0;
  while (tree[static_cast<size_t>(rank)].parent >= 0 && edges <= static_cast<int>(tree.size())) {
    rank = tree[static_cast<size_t>(rank)].parent;
    ++edges;
  }
  return edges;
}

void expectTree(const std::vector<TreeNode>& tree, int ranks) {
  ASSERT_EQ(tree.size(), static_cast<size_t>(ranks));
  int roots = 0;
  size_t children = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const TreeNode& node = tree[static_cast<size_t>(rank)];
    if (node.parent < 0) ++roots;
    ASSERT_LE(node.children.size(), 2u);
    ASSERT_TRUE(std::is_sorted(node.children.begin(), node.children.end()));
    for (const int child : node.children) ASSERT_EQ(tree[static_cast<size_t>(child)].parent, rank);
    children += node.children.size();
    ASSERT_LE(depth(tree, rank), std::bit_width(static_cast<unsigned>(ranks)) - 1) << "rank " << rank;
  }
  ASSERT_EQ(roots, 1);
  ASSERT_EQ(children, static_cast<size_t>(ranks - 1));
}

TEST(FlatLayout, HasTwoBinaryTreesOfLogarithmicDepth) {
  for (int ranks = 1; ranks <= 600; ++ranks) {
    const Layout layout = flatLayout(ranks);
    for (const auto& tree : layout.channels[0].trees) {
      SCOPED_TRACE(ranks);
      expectTree(tree, ranks);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(FlatLayout, MakesEveryRankALeafOfOneTree) {
  for (int ranks = 1; ranks <= 600; ++ranks) {
    const Layout layout = flatLayout(ranks);
    const auto& trees = layout.channels[0].trees;
    for (size_t rank = 0; rank < static_cast<size_t>(ranks); ++rank)
      EXPECT_TRUE(trees[0][rank].children.empty() || trees[1][rank].children.empty())
          << "rank " << rank << " of " << ranks;
  }
}

TEST(FlatLayout, GivesTheTwoTreesDifferentRoots) {
  for (int ranks = 2; ranks <= 600; ++ranks) {
    const Layout layout = flatLayout(ranks);
    const auto& trees = layout.channels[0].trees;
    const auto isRoot = [](const TreeNode& node) { return node.parent < 0; };
    EXPECT_NE(std::find_if(trees[0].begin(), trees[0].end(), isRoot) - trees[0].begin(),
              std::find_if(trees[1].begin(), trees[1].end(), isRoot) - trees[1].begin())
        << ranks;
  }
}

TEST(FlatLayout, OrdersRingsByRankOnEveryChannel) {
  const Layout layout = flatLayout(5, 3);
  EXPECT_EQ(layout.ranks, 5);
  ASSERT_EQ(layout.channels.size(), 3u);
  for (const ChannelLayout& channel : layout.channels)
    EXPECT_EQ(channel.ring, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(FlatLayout, RefusesNoRanksAndNoChannels) {
  EXPECT_THROW(flatLayout(0), Error);
  EXPECT_THROW(flatLayout(-1), Error);
  EXPECT_THROW(flatLayout(4, 0), Error);
}

}  // namespace
}  // namespace topoccl
