// TCP sockets of set-up code: close-on-exec and non-blocking from birth, and every wait has a deadline and an
// abort flag. Sending to a closed peer is an error, never SIGPIPE. Functions throw Error, with `what` saying
// what was tried.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/descriptor.h"

namespace topoccl {

// An IPv4 or IPv6 address with port.
class SocketAddress {
 public:
  SocketAddress() = default;
  SocketAddress(const sockaddr* address, socklen_t bytes);
  // `address` has 4 or 16 bytes.
  static SocketAddress fromBytes(std::string_view address, uint16_t port);
  // "127.0.0.1:80", "[::1]:80", "host:80"; resolves names. Throws InvalidArgument.
  static SocketAddress parse(const std::string& text);

  int family() const { return storage_.ss_family; }
  std::string_view bytes() const;  // 4, 16, or none
  uint16_t port() const;
  SocketAddress withPort(uint16_t port) const { return fromBytes(bytes(), port); }
  std::string text() const;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const { return size_; }
  bool operator==(const SocketAddress& other) const {
    return family() == other.family() && bytes() == other.bytes() && port() == other.port();
  }

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

// Port 0 takes a free one; localAddress() tells which.
Descriptor listenOn(const SocketAddress& address);
// Disconnected descriptor where somebody else has the port.
Descriptor tryListen(const SocketAddress& address);
SocketAddress localAddress(int socket);

// Disconnected descriptor where the peer can't be reached now (refused, unreachable, timed out): `error` is
// then the errno value and the caller may try again. Throws for what no retry mends, and when `wait` is over.
Descriptor tryConnect(const SocketAddress& address, const Wait& wait, int& error);

// The next waiting connection. Disconnected descriptor where there is none or it died meanwhile: `error` is
// then the errno value (EAGAIN, EMFILE, ...).
Descriptor tryAccept(int listener, int& error);

// Blocks until `events` (POLLIN, POLLOUT), an error or end of file shows.
void waitUntilReady(int descriptor, short events, const Wait& wait, const std::string& what);

void sendAll(int socket, std::string_view bytes, const Wait& wait, const std::string& what);

// At least one byte, or 0 at end of file.
size_t receiveSome(int socket, void* data, size_t bytes, const Wait& wait, const std::string& what);

// Exactly `bytes`. End of file is a RemoteError.
void receiveAll(int socket, void* data, size_t bytes, const Wait& wait, const std::string& what);

// What can be done without waiting: number of bytes; nothing when it would block; throws RemoteError when the
// connection is broken. receiveNow's 0 is end of file.
std::optional<size_t> sendNow(int socket, std::string_view bytes, const std::string& what);
std::optional<size_t> receiveNow(int socket, void* data, size_t bytes, const std::string& what);

}  // namespace topoccl
