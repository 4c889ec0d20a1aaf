// A call as a group collects it.
#pragma once

#include <memory>

#include "communicator/call.h"

namespace topoccl {

class Communicator;
class HostStream;

// Without a stream its caller waits for it.
struct IssuedCall {
  Communicator* communicator;
  AnyCall call;
  std::shared_ptr<HostStream> stream;
  bool inBackground = false;  // the stream is the communicator's own, as its caller doesn't want to wait
};

}  // namespace topoccl
