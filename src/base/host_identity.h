// Who shares memory with whom: identities of hosts and processes, compared between ranks at init.
#pragma once

#include <cstdint>
#include <string>

namespace topoccl {

// Up to the first dot, as NCCL prints it; "localhost" if the system has none.
std::string hostName();

// Equal for two processes iff they can share memory files: same kernel boot and same network, IPC and user
// namespaces (containers of one machine usually differ). `hostId` (NCCL_HOSTID) replaces it all where not
// empty. `procRoot` is "/proc" but in tests; without it the host's name must do, which at worst keeps two
// processes of one host apart.
uint64_t hostIdentity(const std::string& hostId, const std::string& procRoot = "/proc");

// Tells apart all processes on earth, also a fork's child from its parent.
uint64_t processToken();

}  // namespace topoccl
