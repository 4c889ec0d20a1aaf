#include "base/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace topoccl {
namespace {

std::string errorText(int error) {
  return std::generic_category().message(error);
}

Descriptor newSocket(int family) {
  Descriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) throwSystemError("making a TCP socket", errno);
  return socket;
}

void sendWithoutDelay(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// What another try may mend: the peer is not there yet, or the network is busy.
bool mayPass(int error) {
  switch (error) {
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN:
    case EADDRNOTAVAIL:
    case EAGAIN:
      return true;
    default:
      return false;
  }
}

int pendingError(int socket) {
  int error = 0;
  socklen_t bytes = sizeof(error);
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) return errno;
  return error;
}

[[noreturn]] void throwBroken(const std::string& what, int error) {
  throw Error(Code::RemoteError, concat(what, ": ", errorText(error)));
}

}  // namespace

SocketAddress::SocketAddress(const sockaddr* address, socklen_t bytes)
    : size_(std::min<socklen_t>(bytes, sizeof(storage_))) {
  std::memcpy(&storage_, address, size_);
}

SocketAddress SocketAddress::fromBytes(std::string_view address, uint16_t port) {
  if (address.size() == 4) {
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    std::memcpy(&four.sin_addr, address.data(), 4);
    return {reinterpret_cast<const sockaddr*>(&four), sizeof(four)};
  }
  if (address.size() != 16) throw Error(Code::InvalidArgument, "an IP address has 4 or 16 bytes");
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  std::memcpy(&six.sin6_addr, address.data(), 16);
  return {reinterpret_cast<const sockaddr*>(&six), sizeof(six)};
}

SocketAddress SocketAddress::parse(const std::string& text) {
  const size_t colon = text.rfind(':');
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (host.empty() || port.empty() || port.size() > 5 ||
      port.find_first_not_of("0123456789") != std::string::npos || std::stoi(port) > 65535)
    throw Error(Code::InvalidArgument, concat("\"", text, "\" is not host:port or [IPv6]:port"));

  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (error != 0 || !found)
    throw Error(Code::InvalidArgument, concat("can't resolve \"", host, "\": ", ::gai_strerror(error)));
  const SocketAddress address(found->ai_addr, found->ai_addrlen);
  ::freeaddrinfo(found);
  return address;
}

std::string_view SocketAddress::bytes() const {
  if (family() == AF_INET)
    return {reinterpret_cast<const char*>(&reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr), 4};
  if (family() == AF_INET6)
    return {reinterpret_cast<const char*>(&reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr), 16};
  return {};
}

uint16_t SocketAddress::port() const {
  if (family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
  if (family() == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_port);
  return 0;
}

std::string SocketAddress::text() const {
  char host[NI_MAXHOST] = {};
  if (::getnameinfo(get(), size_, host, sizeof(host), nullptr, 0, NI_NUMERICHOST) != 0) return "(no address)";
  return family() == AF_INET6 ? concat("[", host, "]:", port()) : concat(host, ":", port());
}

Descriptor tryListen(const SocketAddress& address) {
  Descriptor socket = newSocket(address.family());
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(socket.get(), address.get(), address.size()) != 0) {
    if (errno == EADDRINUSE) return Descriptor();
    throwSystemError("binding a socket to " + address.text(), errno);
  }
  // The kernel lowers this to net.core.somaxconn; connectors retry what a short queue turns away.
  if (::listen(socket.get(), 4096) != 0) {
    if (errno == EADDRINUSE) return Descriptor();
    throwSystemError("listening on " + address.text(), errno);
  }
  return socket;
}

Descriptor listenOn(const SocketAddress& address) {
  Descriptor socket = tryListen(address);
  if (!socket) throwSystemError("listening on " + address.text(), EADDRINUSE);
  return socket;
}

SocketAddress localAddress(int socket) {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof(storage);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&storage), &bytes) != 0)
    throwSystemError("reading a socket's address", errno);
  return {reinterpret_cast<const sockaddr*>(&storage), bytes};
}

Descriptor tryConnect(const SocketAddress& address, const Wait& wait, int& error) {
  const std::string what = "connecting to " + address.text();
  throwIfOver(wait, what);
  Descriptor socket = newSocket(address.family());
  error = ::connect(socket.get(), address.get(), address.size()) == 0 ? 0 : errno;
  // An interrupted connect goes on in the background, like one in progress.
  if (error == EINPROGRESS || error == EINTR) {
    waitUntilReady(socket.get(), POLLOUT, wait, what);
    error = pendingError(socket.get());
  }
  if (error != 0 && !mayPass(error)) throwSystemError(what, error);
  // Connecting to a free local port can meet itself: the kernel may pick that very port as the source.
  if (error == 0 && localAddress(socket.get()) == address) error = ECONNREFUSED;
  if (error != 0) return Descriptor();
  sendWithoutDelay(socket.get());
  return socket;
}

Descriptor tryAccept(int listener, int& error) {
  Descriptor socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  error = socket ? 0 : errno;
  if (socket) sendWithoutDelay(socket.get());
  return socket;
}

void waitUntilReady(int descriptor, short events, const Wait& wait, const std::string& what) {
  for (;;) {
    throwIfOver(wait, what);
    const auto slice = std::chrono::ceil<std::chrono::milliseconds>(wait.deadline.left(kWaitSlice));
    pollfd entry{descriptor, events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(slice.count()));
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) throwSystemError(what, errno);
  }
}

std::optional<size_t> sendNow(int socket, std::string_view bytes, const std::string& what) {
  for (;;) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return static_cast<size_t>(sent);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::nullopt;
    if (errno != EINTR) throwBroken(what, errno);
  }
}

std::optional<size_t> receiveNow(int socket, void* data, size_t bytes, const std::string& what) {
  for (;;) {
    const ssize_t received = ::recv(socket, data, bytes, MSG_DONTWAIT);
    if (received >= 0) return static_cast<size_t>(received);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::nullopt;
    if (errno != EINTR) throwBroken(what, errno);
  }
}

void sendAll(int socket, std::string_view bytes, const Wait& wait, const std::string& what) {
  while (!bytes.empty()) {
    if (const auto sent = sendNow(socket, bytes, what))
      bytes.remove_prefix(*sent);
    else
      waitUntilReady(socket, POLLOUT, wait, what);
  }
}

size_t receiveSome(int socket, void* data, size_t bytes, const Wait& wait, const std::string& what) {
  for (;;) {
    if (const auto received = receiveNow(socket, data, bytes, what)) return *received;
    waitUntilReady(socket, POLLIN, wait, what);
  }
}

void receiveAll(int socket, void* data, size_t bytes, const Wait& wait, const std::string& what) {
  char* next = static_cast<char*>(data);
  while (bytes > 0) {
    const size_t received = receiveSome(socket, next, bytes, wait, what);
    if (received == 0) throw Error(Code::RemoteError, what + ": the peer closed the connection");
    next += received;
    bytes -= received;
  }
}

}  // namespace topoccl
