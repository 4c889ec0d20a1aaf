// Unix sockets under abstract names (nothing on disk, gone with the process) that pass descriptors between
// processes of one user on one host. Same rules as socket.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/descriptor.h"

namespace topoccl {

// `name` is at most 100 bytes; any process in the same network namespace may connect to it.
Descriptor listenAbstract(const std::string& name);

// Retries while the queue is full, until `wait` is over. RemoteError where nobody listens.
Descriptor connectAbstract(const std::string& name, const Wait& wait);

// Whether the peer's process runs as our own effective user (SO_PEERCRED).
bool peerIsSameUser(int socket);

// One byte with one descriptor attached; the sender keeps its own.
void sendDescriptor(int socket, int descriptor, const Wait& wait, const std::string& what);

// Exactly one descriptor; anything else that came is closed and a RemoteError. SystemError where this process
// may open no more.
Descriptor receiveDescriptor(int socket, const Wait& wait, const std::string& what);

}  // namespace topoccl
