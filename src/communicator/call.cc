#include "communicator/call.h"

namespace topoccl {

bool reduces(Collective collective) {
  switch (collective) {
    case Collective::AllReduce:
    case Collective::Reduce:
    case Collective::ReduceScatter:
      return true;
    default:
      return false;
  }
}

bool hasRoot(Collective collective) {
  switch (collective) {
    case Collective::Broadcast:
    case Collective::Reduce:
    case Collective::Gather:
    case Collective::Scatter:
      return true;
    default:
      return false;
  }
}

}  // namespace topoccl
