// A communicator is made of ranks of another one, which see each other die also where they have not met in
// the new one yet.
#pragma once

#include <vector>

#include "base/deadline.h"
#include "communicator/node_set_up.h"

namespace topoccl {

class PartWatch {
 public:
  // `node` is the parent's, `rank` this rank there.
  PartWatch(NodeSetUp node, int rank, std::vector<int> members);
  // Throws RemoteError naming a member that is gone. At most a few times in a second.
  void check();
  void checkNow() const;

 private:
  NodeSetUp node_;
  int rank_;
  std::vector<int> members_;
  Deadline next_ = Deadline::in({});
};

}  // namespace topoccl
