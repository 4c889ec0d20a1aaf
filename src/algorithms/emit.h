// What the emitters share.
#pragma once

#include <vector>

#include "schedule/builder.h"
#include "schedule/layout.h"

namespace topoccl {

// Throws InvalidArgument unless 0 <= rank < layout.ranks and there is a channel.
void checkRank(const Layout& layout, int rank);

// A single rank's all-reduce is a copy.
Schedule emitAlone();

// Every rank but `rank`, starting behind it and wrapping around: ranks that all follow this order from their
// own place don't crowd one peer.
std::vector<int> othersFrom(int ranks, int rank);

// Every rank but `rank`, ascending.
std::vector<int> othersOf(int ranks, int rank);

}  // namespace topoccl
