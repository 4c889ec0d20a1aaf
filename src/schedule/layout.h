// What the topology search finds and the emitters read: plain values.
#pragma once

#include <vector>

namespace topoccl {

// A rank's place in one tree. parent is -1 at the root; children ascend.
struct TreeNode {
  int parent = -1;
  std::vector<int> children;

  bool operator==(const TreeNode&) const = default;
};

// One channel: every algorithm's pattern over all ranks. ring[i] sends to ring[(i + 1) % ranks];
// trees[t][rank] for the two trees of a double binary tree.
struct ChannelLayout {
  std::vector<int> ring;
  std::vector<TreeNode> trees[2];
};

struct Layout {
  int ranks = 1;
  std::vector<ChannelLayout> channels;  // at least one
};

// The layout of ranks of which nothing is known: rings in rank order and the double binary tree of
// Sanders, Speck and Traeff ("Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009),
// in which every rank but at most one is a leaf of one tree. Throws InvalidArgument unless ranks >= 1 and
// channels >= 1.
Layout flatLayout(int ranks, int channels = 1);

}  // namespace topoccl
