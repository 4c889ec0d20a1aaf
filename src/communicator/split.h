// Communicators made of an existing one's ranks.
#pragma once

#include <vector>

#include "base/settings.h"
#include "bootstrap/unique_id.h"
#include "transport/board.h"

namespace topoccl {

class Member;

// A rank's colour where it takes part in a split but in none of the new communicators.
inline constexpr int kNoColor = -1;

// This rank's place in its new communicator.
struct SplitPart {
  int rank = 0;
  std::vector<int> members;  // the parent's ranks, by new rank; none where this rank is in none
  UniqueId id;
  Meeting meeting;  // that of its ranks
};

// An id with a root of its own, also where the parent met at NCCL_COMM_ID. Throws what getUniqueId() does.
UniqueId idWithRoot(Settings settings);

// Collective over the parent: ranks of the same colour make up a new communicator, ordered by key, then by
// rank. Throws InvalidArgument on all ranks for a colour below kNoColor.
SplitPart joinSplit(Member& parent, int color, int key);

}  // namespace topoccl
