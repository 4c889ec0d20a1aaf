// A communicator of those ranks of another one that remain. Nothing of the other works any more, perhaps, and
// its root may be gone with a rank: they meet on the node's board.
#pragma once

#include <cstdint>
#include <vector>

#include "base/deadline.h"
#include "communicator/split.h"

namespace topoccl {

class Member;

// The ranks of 0..ranks-1 that are not in `excluded`. Throws InvalidArgument where that names a rank that
// there is none of, or `self`.
std::vector<int> remainingRanks(int ranks, int self, const std::vector<int>& excluded);

// This rank's place among `remaining`, all of which call this, for the `count`-th time. Throws RemoteError
// where one of them is gone, fails, or does not come until the deadline, and InvalidUsage where they differ
// on who remains, or the parent is aborted. With `needsParent` it must be sound all the while. The others
// learn why it throws.
SplitPart joinShrink(Member& parent, const std::vector<int>& remaining, uint64_t count, bool needsParent,
                     const Wait& wait);

}  // namespace topoccl
