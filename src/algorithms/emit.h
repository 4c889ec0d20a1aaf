// What the emitters share.
#pragma once

#include <vector>

#include "schedule/builder.h"
#include "schedule/layout.h"

namespace topoccl {

// Throws InvalidArgument unless rank and root are in [0, layout.ranks) and there is a channel.
void checkRank(const Layout& layout, int rank, int root = 0);

// Every collective of a single rank is a copy; `final` as its goal says.
Schedule emitAlone(bool final);

// Every rank but `rank`, starting behind it and wrapping around: ranks that all follow this order from their
// own place don't crowd one peer.
std::vector<int> othersFrom(int ranks, int rank);

// Every rank but `rank`, ascending.
std::vector<int> othersOf(int ranks, int rank);

// Chunk of a channel's part of a block, where every rank has a block: a channel is a part.
uint32_t blockChunk(const Layout& layout, int channel, int block);

// A builder for such collectives.
ScheduleBuilder blockBuilder(const Layout& layout, int rank);

// Consecutive blocks, which may wrap around after the last.
struct BlockRun {
  int first = 0;
  int count = 0;
};

// The blocks [first, first + count) mod ranks, cut where they wrap.
std::vector<BlockRun> blockRuns(int ranks, int first, int count);

}  // namespace topoccl
