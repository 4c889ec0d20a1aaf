// Network interfaces, and which of them sockets use.
#pragma once

#include <string>
#include <vector>

#include "base/socket.h"

namespace topoccl {

struct NetworkInterface {
  std::string name;
  SocketAddress address;  // port 0
};

// Interfaces that are up, one row per address; link-local IPv6 addresses are left out, since they mean
// nothing on another host without naming that host's interface.
std::vector<NetworkInterface> networkInterfaces();

// The rows of `all` that `filter` (NCCL_SOCKET_IFNAME) lets through, best first, IPv4 before IPv6.
//   "eth,ib"   names that start with eth or ib      "=eth0"  exactly that name
//   "^docker"  all others                            "^=lo"   all but exactly that name
//   ""         ib*, then others, then docker*, then lo: a host may have nothing but lo
// Throws InvalidArgument that lists what there is when nothing is left; SystemError where `all` is empty.
std::vector<NetworkInterface> chooseInterfaces(const std::vector<NetworkInterface>& all,
                                               const std::string& filter);

}  // namespace topoccl
