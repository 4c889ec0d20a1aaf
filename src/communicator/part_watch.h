// A communicator is made of ranks of another one, on whose board they tell each other that they give up, and
// in whose memory they see each other die, also where they have not met in the new one yet.
#pragma once

#include "base/deadline.h"
#include "communicator/node_set_up.h"
#include "communicator/split.h"

namespace topoccl {

class PartWatch {
 public:
  // `node` is the parent's, `rank` this rank there.
  PartWatch(NodeSetUp node, int rank, SplitPart part);
  // Throws RemoteError naming a member that is gone or gave up. Looks at most a few times in a second.
  void check();
  void checkNow() const;
  // Tells the others.
  void giveUp(const char* why) const;

 private:
  NodeSetUp node_;
  int rank_;
  SplitPart part_;
  Deadline next_ = Deadline::in({});
};

}  // namespace topoccl
