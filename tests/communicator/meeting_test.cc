// A rank that dies on its way from a communicator to the one that is made of it. The new one's root has never
// met it: only the old one can tell. This program's connect() stands in for the system's, also in the
// library.
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

#include "communicator/survivors.h"

namespace {

enum class OnTheWay { Arrives, Dies, GivesUp };
OnTheWay way = OnTheWay::Arrives;

}  // namespace

extern "C" int connect(int socket, const sockaddr* address, socklen_t bytes) {
  if (way == OnTheWay::Dies && address->sa_family != AF_UNIX) ::kill(::getpid(), SIGKILL);
  if (way == OnTheWay::GivesUp && address->sa_family != AF_UNIX) {
    errno = EACCES;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_connect, socket, address, bytes));
}

namespace topoccl::test {
namespace {

using Make = std::function<ncclResult_t(ncclComm_t parent, int rank, ncclComm_t* out)>;

// Rank 3 has no part in what the others make; rank `victim` ends its way while they do.
void expectTold(int victim, OnTheWay end, const Make& make) {
  const Environment environment{{"TOPOCCL_INIT_TIMEOUT", "60"}};
  const ncclUniqueId id = newId();
  SharedValue<Shared> shared;
  const int told = end == OnTheWay::Dies ? 2 : 3;
  onProcesses(
      4,
      [&](int rank) {
        const ncclComm_t parent = joined(id, 4, rank);
        EXPECT_EQ(sum(parent, 100), ncclSuccess);
        ++shared->arrived;
        while (shared->arrived < 4) ::usleep(200);
        if (rank == victim) way = end;
        ncclComm_t next = nullptr;
        const ncclResult_t made = make(parent, rank, &next);
        if (rank == victim) {
          EXPECT_EQ(made, ncclSystemError);
          ++shared->told;
        } else if (rank != 3) {
          EXPECT_EQ(made, ncclRemoteError);
          EXPECT_EQ(next, nullptr);
          EXPECT_TRUE(names(lastError(), victim)) << lastError();
          const char* const why = end == OnTheWay::Dies ? "gone without a goodbye" : "Permission denied";
          EXPECT_NE(lastError().find(why), std::string::npos) << lastError();
          ++shared->told;
        }
        while (shared->told < told) ::usleep(500);
        EXPECT_EQ(ncclCommAbort(parent), ncclSuccess);
        return 0;
      },
      [&](int rank, int status) {
        return rank == victim && end == OnTheWay::Dies ? WIFSIGNALED(status)
                                                       : WIFEXITED(status) && WEXITSTATUS(status) == 0;
      });
}

TEST(Meeting, OfAShrinkTellsOfARankThatDidNotArrive) {
  for (const int victim : {0, 1, 2})
    for (const OnTheWay end : {OnTheWay::Dies, OnTheWay::GivesUp})
      for (const int flags : {NCCL_SHRINK_DEFAULT, NCCL_SHRINK_ABORT})
        expectTold(victim, end, [&](ncclComm_t parent, int rank, ncclComm_t* out) {
          return rank == 3 ? ncclSuccess : shrink(parent, {3}, out, flags);
        });
}

TEST(Meeting, OfASplitTellsOfARankThatDidNotArrive) {
  for (const int victim : {0, 1, 2})
    for (const OnTheWay end : {OnTheWay::Dies, OnTheWay::GivesUp})
      expectTold(victim, end, [](ncclComm_t parent, int rank, ncclComm_t* out) {
        return ncclCommSplit(parent, rank == 3 ? NCCL_SPLIT_NOCOLOR : 7, 3 - rank, out, nullptr);
      });
}

}  // namespace
}  // namespace topoccl::test
