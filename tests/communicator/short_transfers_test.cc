// Sockets that carry one byte at a time, in either direction: what the system may always do. This program's
// send() and recv() stand in for the system's, also in the library.
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "communicator/ranks.h"
#include "communicator/streams.h"

namespace {

std::atomic<int> transfers{0};

}  // namespace

extern "C" {

ssize_t send(int socket, const void* data, size_t bytes, int flags) {
  ++transfers;
  return ::syscall(SYS_sendto, socket, data, std::min<size_t>(bytes, 1), flags, nullptr, 0);
}

ssize_t recv(int socket, void* data, size_t bytes, int flags) {
  ++transfers;
  return ::syscall(SYS_recvfrom, socket, data, std::min<size_t>(bytes, 1), flags, nullptr, nullptr);
}
}

namespace topoccl::test {
namespace {

TEST(ShortTransfers, AreEnoughForThreads) {
  const ncclUniqueId id = newId();
  onThreads(3, [&](int rank) {
    const Comm comm(id, 3, rank);
    expectSum(comm, 3, rank, 1000);
    ncclComm_t part = nullptr;
    EXPECT_EQ(ncclCommSplit(comm, 0, 0, &part, nullptr), ncclSuccess) << lastError();
    EXPECT_EQ(ncclCommDestroy(part), ncclSuccess) << lastError();
  });
  EXPECT_GT(transfers, 1000) << "the library's transfers must be seen";
}

TEST(ShortTransfers, AreEnoughForProcesses) {
  const ncclUniqueId id = newId();
  onProcesses(3, [&](int rank) {
    const Comm comm(id, 3, rank);
    expectSum(comm, 3, rank, 1000);
    return 0;
  });
}

}  // namespace
}  // namespace topoccl::test
