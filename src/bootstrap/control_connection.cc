#include "bootstrap/control_connection.h"

#include <sys/socket.h>

#include <array>

#include "base/socket.h"

namespace topoccl {
namespace {

[[noreturn]] void throwClosed(const std::string& what) {
  throw Error(Code::RemoteError, what + ": the peer closed the connection");
}

}  // namespace

ConnectionKeys authenticate(int socket, const Bytes32& key, Purpose purpose, uint32_t rank,
                            uint32_t serverRank, const Wait& wait, const std::string& what) {
  ClientHandshake handshake(key, purpose, rank);
  sendAll(socket, handshake.hello(), wait, what);
  std::array<char, kChallengeBytes> challenge;
  receiveAll(socket, challenge.data(), challenge.size(), wait, what);
  const std::optional<std::string> proof = handshake.answer({challenge.data(), challenge.size()});
  if (!proof || handshake.serverRank() != serverRank)
    throw Error(
        Code::InvalidUsage,
        what +
            ": who listens there does not hold this id's secret; the unique id is wrong or from an earlier "
            "run, or made of NCCL_COMM_ID with another TOPOCCL_SECRET");
  sendAll(socket, *proof, wait, what);
  return handshake.keys();
}

void ControlConnection::send(Message kind, const std::string& payload, const Wait& wait,
                             const std::string& what) {
  const Payload shared(payload);
  std::string bytes = sealer_.seal(static_cast<uint8_t>(kind), shared);
  bytes += payload;
  sendAll(socket_.get(), bytes, wait, what);
}

std::optional<Frame> ControlConnection::take(const std::string& what) {
  std::optional<Frame> frame = opener_.next(input_);
  if (opener_.broken()) throw Error(Code::RemoteError, what + ": a message is not genuine");
  return frame;
}

Frame ControlConnection::receive(const Wait& wait, const std::string& what) {
  std::array<char, 16384> buffer;
  for (;;) {
    if (std::optional<Frame> frame = take(what)) return std::move(*frame);
    const size_t count = receiveSome(socket_.get(), buffer.data(), buffer.size(), wait, what);
    if (count == 0) throwClosed(what);
    input_.append(buffer.data(), count);
  }
}

std::optional<Frame> ControlConnection::poll(const std::string& what) {
  if (std::optional<Frame> frame = take(what)) return frame;
  std::array<char, 4096> buffer;
  const std::optional<size_t> count = receiveNow(socket_.get(), buffer.data(), buffer.size(), what);
  if (!count) return std::nullopt;
  if (*count == 0) throwClosed(what);
  input_.append(buffer.data(), *count);
  return take(what);
}

void ControlConnection::close() {
  if (!socket_) return;
  ::shutdown(socket_.get(), SHUT_WR);
  socket_.reset();
}

}  // namespace topoccl
