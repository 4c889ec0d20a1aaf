// A rank's blocking end of an authenticated connection: the handshake as client, then frames.
#pragma once

#include <optional>
#include <string>

#include "base/deadline.h"
#include "base/descriptor.h"
#include "bootstrap/frame.h"
#include "bootstrap/handshake.h"
#include "bootstrap/messages.h"

namespace topoccl {

// Authenticates as `rank`. Throws RemoteError where the peer goes away or stays silent, and InvalidUsage
// where it does not hold the key or is not `serverRank`.
ConnectionKeys authenticate(int socket, const Bytes32& key, Purpose purpose, uint32_t rank,
                            uint32_t serverRank, const Wait& wait, const std::string& what);

class ControlConnection {
 public:
  ControlConnection(Descriptor socket, const ConnectionKeys& keys)
      : socket_(std::move(socket)), sealer_(keys.toServer), opener_(keys.toClient, kMaxFrameBytes) {}

  void send(Message kind, const std::string& payload, const Wait& wait, const std::string& what);

  // The next frame. RemoteError at end of file and where the bytes are not genuine.
  Frame receive(const Wait& wait, const std::string& what);

  // The same without waiting and with at most one system call.
  std::optional<Frame> poll(const std::string& what);

  // Sends end of file: what was sent before still arrives.
  void close();

 private:
  std::optional<Frame> take(const std::string& what);

  Descriptor socket_;
  FrameSealer sealer_;
  FrameOpener opener_;
  std::string input_;
};

}  // namespace topoccl
