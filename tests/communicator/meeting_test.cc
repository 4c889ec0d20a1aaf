// A rank that dies on its way from a communicator to the one that is made of it. The new one's root has never
// met it: only the old one can tell. This program's connect() stands in for the system's, also in the
// library.
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <functional>

#include "communicator/survivors.h"

namespace {

bool diesOnTheWay = false;

}  // namespace

extern "C" int connect(int socket, const sockaddr* address, socklen_t bytes) {
  if (diesOnTheWay && address->sa_family != AF_UNIX) ::kill(::getpid(), SIGKILL);
  return static_cast<int>(::syscall(SYS_connect, socket, address, bytes));
}

namespace topoccl::test {
namespace {

using Make = std::function<ncclResult_t(ncclComm_t parent, int rank, ncclComm_t* out)>;

// Rank 3 has no part in what the others make; rank `victim` dies while they do.
void expectTold(int victim, const Make& make) {
  const Environment environment{{"TOPOCCL_INIT_TIMEOUT", "30"}};
  const ncclUniqueId id = newId();
  SharedValue<Shared> shared;
  onProcesses(
      4,
      [&](int rank) {
        const ncclComm_t parent = joined(id, 4, rank);
        EXPECT_EQ(sum(parent, 100), ncclSuccess);
        diesOnTheWay = rank == victim;
        ncclComm_t next = nullptr;
        const ncclResult_t made = make(parent, rank, &next);
        if (rank != 3) {
          EXPECT_EQ(made, ncclRemoteError);
          EXPECT_EQ(next, nullptr);
          EXPECT_TRUE(names(lastError(), victim)) << lastError();
          EXPECT_NE(lastError().find("gone without a goodbye"), std::string::npos) << lastError();
          ++shared->told;
        }
        while (shared->told < 2) ::usleep(500);
        EXPECT_EQ(ncclCommAbort(parent), ncclSuccess);
        return 0;
      },
      [&](int rank, int status) {
        return rank == victim ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0;
      });
}

TEST(Meeting, OfAShrinkTellsOfARankThatDiedOnTheWay) {
  for (const int victim : {0, 1, 2})
    for (const int flags : {NCCL_SHRINK_DEFAULT, NCCL_SHRINK_ABORT})
      expectTold(victim, [&](ncclComm_t parent, int rank, ncclComm_t* out) {
        return rank == 3 ? ncclSuccess : shrink(parent, {3}, out, flags);
      });
}

TEST(Meeting, OfASplitTellsOfARankThatDiedOnTheWay) {
  for (const int victim : {0, 1, 2})
    expectTold(victim, [](ncclComm_t parent, int rank, ncclComm_t* out) {
      return ncclCommSplit(parent, rank == 3 ? NCCL_SPLIT_NOCOLOR : 7, 3 - rank, out, nullptr);
    });
}

}  // namespace
}  // namespace topoccl::test
