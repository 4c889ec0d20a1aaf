// Hands shared memory from one rank of a node to the other processes of that node, over an authenticated unix
// socket.
#pragma once

#include <functional>
#include <vector>

#include "base/deadline.h"
#include "base/memory_file.h"
#include "bootstrap/bootstrap.h"

namespace topoccl {

// Who takes part on the calling rank's node: `leader` makes the file, `receivers` get it (one rank of each
// other process on the node; threads of a process share what that one maps). Equal on all ranks of a node.
struct NodeShare {
  int leader = 0;
  std::vector<int> receivers;
};

// Collective over all ranks of `bootstrap`, whatever their nodes. On the leader `make` creates the file: a
// sealed one if there are receivers, anonymous() will do if there are none. Returns the file on the leader
// and the receivers, an empty object elsewhere. If `make` throws on any leader, every rank throws; if handing
// over fails, the ranks concerned throw and everybody else's failure() shows it. `wait` should carry init's
// deadline.
MemoryFile shareOnNode(Bootstrap& bootstrap, const NodeShare& share, const std::function<MemoryFile()>& make,
                       const Wait& wait);

}  // namespace topoccl
