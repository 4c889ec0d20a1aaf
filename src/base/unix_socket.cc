#include "base/unix_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>
#include <vector>

#include "base/socket.h"

namespace topoccl {
namespace {

struct AbstractAddress {
  sockaddr_un address{};
  socklen_t bytes = 0;

  explicit AbstractAddress(const std::string& name) {
    if (name.empty() || name.size() > 100)
      throw Error(Code::InvalidArgument, "abstract name: 1 to 100 bytes");
    address.sun_family = AF_UNIX;
    // A leading zero byte makes the name abstract; its length is the address's.
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

Descriptor newSocket() {
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) throwSystemError("making a unix socket", errno);
  return socket;
}

// Asking again mends what the peer did, not what this system refuses.
[[noreturn]] void throwFailed(const std::string& what, int error) {
  if (error != ECONNRESET && error != EPIPE && error != ENOTCONN) throwSystemError(what, error);
  throw Error(Code::RemoteError, concat(what, ": ", std::generic_category().message(error)));
}

std::vector<Descriptor> takeDescriptors(msghdr& message) {
  std::vector<Descriptor> taken;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      taken.emplace_back(number);
    }
  }
  return taken;
}

}  // namespace

Descriptor listenAbstract(const std::string& name) {
  const AbstractAddress address(name);
  Descriptor socket = newSocket();
  if (::bind(socket.get(), address.get(), address.bytes) != 0)
    throwSystemError("binding the unix socket @" + name, errno);
  if (::listen(socket.get(), 4096) != 0) throwSystemError("listening on the unix socket @" + name, errno);
  return socket;
}

Descriptor connectAbstract(const std::string& name, const Wait& wait) {
  const AbstractAddress address(name);
  const std::string what = "connecting to the unix socket @" + name;
  for (;;) {
    Descriptor socket = newSocket();
    if (::connect(socket.get(), address.get(), address.bytes) == 0) return socket;
    if (errno == ECONNREFUSED) throw Error(Code::RemoteError, what + ": nobody listens there");
    if (errno != EAGAIN && errno != EINTR) throwSystemError(what, errno);
    throwIfOver(wait, what);
    sleepFor(std::chrono::milliseconds(1), wait, what);
  }
}

bool peerIsSameUser(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == ::geteuid();
}

void sendDescriptor(int socket, int descriptor, const Wait& wait, const std::string& what) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(part), &descriptor, sizeof(int));
  while (::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno == EAGAIN)
      waitUntilReady(socket, POLLOUT, wait, what);
    else if (errno != EINTR)
      throwFailed(what, errno);
  }
}

Descriptor receiveDescriptor(int socket, const Wait& wait, const std::string& what) {
  char byte = 0;
  iovec data{&byte, 1};
  // Room for a few more than wanted, so that extra ones are seen and closed.
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  ssize_t received;
  for (;;) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    received = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (received >= 0) break;
    if (errno == EAGAIN)
      waitUntilReady(socket, POLLIN, wait, what);
    else if (errno != EINTR)
      throwFailed(what, errno);
  }
  std::vector<Descriptor> taken = takeDescriptors(message);
  if (received == 1 && taken.empty() && (message.msg_flags & MSG_CTRUNC) != 0) throwSystemError(what, EMFILE);
  if (received != 1 || taken.size() != 1 || (message.msg_flags & MSG_CTRUNC) != 0)
    throw Error(Code::RemoteError, concat(what, ": expected one descriptor, got ", taken.size()));
  return std::move(taken.front());
}

}  // namespace topoccl
