// The root: a thread that serves one unique id. It sleeps in epoll, never spins, blocks all signals, and ends
// by itself when every rank has left; nobody joins it. Its session (session.h) decides, it moves the bytes.
//
// Strangers can connect. Until a connection has proved that it holds the secret and has joined, it may send a
// few fixed-size bytes, has ten seconds, and is the first to be closed when there are too many like it. None
// of that touches the session.
//
// An id that nobody uses keeps its thread (asleep) and two descriptors until the process ends: an id may be
// used late, and NCCL's users expect that.
#pragma once

#include "base/deadline.h"
#include "base/settings.h"
#include "bootstrap/unique_id.h"

namespace topoccl {

// Listens on the best interface (NCCL_SOCKET_IFNAME) with a new secret, and starts the root in this process.
UniqueId startRoot(const Settings& settings);

// Starts the root of an id from NCCL_COMM_ID at the address it names. The port is free again once all ranks
// have joined, so that the same NCCL_COMM_ID serves one communicator after another; waits for that.
void startRootAt(const Rendezvous& rendezvous, const Settings& settings, const Wait& wait);

}  // namespace topoccl
