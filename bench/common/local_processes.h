// Ranks as processes of this host: the parent starts the program again once per rank, hands each an
// anonymous shared memory file with the board, and watches over them.
#pragma once

#include <optional>

#include "common/memory_map.h"

namespace topoccl::bench {

// What a started process learns about itself.
struct ChildSeat {
  int rank = 0;
  int ranks = 1;
  int boardDescriptor = -1;
};

// This process's seat if superviseLocalRanks started it. Then it also dies with its parent from here on.
std::optional<ChildSeat> takeChildSeat();

// Starts `ranks` processes of this program with the same arguments, waits for all of them and returns the
// exit code of the bench. Signals that ask this process to end are passed on. When a process fails, the
// others are told by the board and, if that does not end them soon, killed. `drivers`: of all
// processes together. Call before any thread exists.
int superviseLocalRanks(char** arguments, int ranks, int drivers);

}  // namespace topoccl::bench
