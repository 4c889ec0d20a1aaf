// What a user sees when things go wrong: clear errors on every rank, nothing hangs.
#include <fcntl.h>
#include <signal.h>

#include <atomic>
#include <set>

#include "communicator/ranks.h"
#include "support/shared_value.h"

namespace topoccl::test {
namespace {

using namespace std::chrono_literals;

ncclResult_t call(ncclComm_t comm, size_t count, ncclDataType_t type = ncclFloat, ncclRedOp_t op = ncclSum) {
  std::vector<double> in(count, 1), out(count);
  return ncclAllReduce(in.data(), out.data(), count, type, op, comm, nullptr);
}

std::string lastError() {
  return ncclGetLastError(nullptr);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Arguments, AreNamedWhenWrong) {
  std::vector<ncclComm_t> comms(1);
  ASSERT_EQ(ncclCommInitAll(comms.data(), 1, nullptr), ncclSuccess);
  float x = 1;
  EXPECT_EQ(ncclAllReduce(nullptr, &x, 1, ncclFloat, ncclSum, comms[0], nullptr), ncclInvalidArgument);
  EXPECT_TRUE(contains(lastError(), "sendbuff")) << lastError();
  EXPECT_EQ(ncclAllReduce(&x, &x, 1, outOfRange<ncclDataType_t>(77), ncclSum, comms[0], nullptr),
            ncclInvalidArgument);
  EXPECT_TRUE(contains(lastError(), "77")) << lastError();
  EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclFloat, outOfRange<ncclRedOp_t>(66), comms[0], nullptr),
            ncclInvalidArgument);
  EXPECT_TRUE(contains(lastError(), "66")) << lastError();
  EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, comms[0], reinterpret_cast<cudaStream_t>(&x)),
            ncclInvalidArgument);
  EXPECT_TRUE(contains(lastError(), "stream")) << lastError();
  EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, nullptr, nullptr), ncclInvalidArgument);
  EXPECT_EQ(x, 1);
  // NULL is fine where nothing is read or written.
  EXPECT_EQ(ncclAllReduce(nullptr, nullptr, 0, ncclFloat, ncclSum, comms[0], nullptr), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(comms[0]), ncclSuccess);
}

TEST(Handle, IsDeadAfterDestroy) {
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess);
  ASSERT_EQ(ncclCommDestroy(comm), ncclSuccess);
  int rank = 0;
  EXPECT_EQ(ncclCommUserRank(comm, &rank), ncclInvalidArgument);
  EXPECT_EQ(ncclCommDestroy(comm), ncclInvalidArgument);
}

TEST(Group, ReportsARefusedCallAtItsEnd) {
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess);
  float x = 5, y = 0;
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(&x, &y, 1, ncclFloat, ncclSum, comm, nullptr), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(&x, &y, 1, ncclFloat, ncclSum, comm, reinterpret_cast<cudaStream_t>(&x)),
            ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_EQ(y, 0) << "nothing of the group may run";
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(Finalize, EndsCollectives) {
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess);
  ASSERT_EQ(ncclCommFinalize(comm), ncclSuccess);
  EXPECT_EQ(call(comm, 1), ncclInvalidUsage);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

// Every way to disagree that slots or boards can show.
struct Disagreement {
  const char* name;
  size_t count[2];
  ncclDataType_t type[2];
  ncclRedOp_t op[2];
};

class Mismatch : public testing::TestWithParam<Disagreement> {};

TEST_P(Mismatch, IsReportedToBothWithBothCalls) {
  const Disagreement& how = GetParam();
  const ncclUniqueId id = newId();
  onThreads(2, [&](int rank) {
    const Comm comm(id, 2, rank);
    ASSERT_EQ(call(comm, 10), ncclSuccess);
    EXPECT_EQ(call(comm, how.count[rank], how.type[rank], how.op[rank]), ncclInvalidUsage) << lastError();
    ncclResult_t state = ncclSuccess;
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
    EXPECT_EQ(state, ncclInvalidUsage);
    EXPECT_EQ(call(comm, 10), ncclInvalidUsage) << "a poisoned communicator must refuse";
    EXPECT_TRUE(contains(lastError(), "rank 0") && contains(lastError(), "rank 1") &&
                contains(lastError(), "#2"))
        << lastError();
  });
}

INSTANTIATE_TEST_SUITE_P(
    Ways, Mismatch,
    testing::Values(Disagreement{"small_counts", {5, 6}, {ncclFloat, ncclFloat}, {ncclSum, ncclSum}},
                    Disagreement{"algorithms", {5, 500000}, {ncclFloat, ncclFloat}, {ncclSum, ncclSum}},
                    Disagreement{
                        "large_counts", {500001, 500000}, {ncclFloat, ncclFloat}, {ncclSum, ncclSum}},
                    Disagreement{"types", {6, 6}, {ncclFloat, ncclInt32}, {ncclSum, ncclSum}},
                    Disagreement{"operators", {6, 6}, {ncclFloat, ncclFloat}, {ncclSum, ncclMax}}),
    [](const auto& parameter) { return parameter.param.name; });

// Waits until the flag is set by another rank of the test.
void await(const std::atomic<bool>& flag) {
  while (!flag.load()) std::this_thread::yield();
}

TEST(Abort, EndsACallInFlightAndTellsThePeers) {
  const ncclUniqueId id = newId();
  std::atomic<bool> told{false};
  onThreads(3, [&](int rank) {
    Comm comm(id, 3, rank);
    if (rank == 2) {  // comes when it is over, and learns of it in its next call
      await(told);
      ncclResult_t state = ncclSuccess;
      EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
      EXPECT_EQ(state, ncclRemoteError);
      EXPECT_EQ(call(comm, 100), ncclRemoteError) << lastError();
      EXPECT_TRUE(contains(lastError(), "rank 0")) << lastError();
      return;
    }
    if (rank == 1) {
      EXPECT_EQ(call(comm, 100), ncclRemoteError) << lastError();
      told = true;
      return;
    }
    const ncclComm_t mine = comm.release();
    std::thread aborter([&] {
      std::this_thread::sleep_for(50ms);  // most likely inside the call; before it is fine too
      EXPECT_EQ(ncclCommAbort(mine), ncclSuccess);
    });
    EXPECT_NE(call(mine, 100), ncclSuccess);
    aborter.join();
  });
}

TEST(Abort, EndsAGroupInFlight) {
  const ncclUniqueId id = newId();
  std::atomic<bool> over{false};
  onThreads(2, [&](int rank) {
    Comm comm(id, 2, rank);
    if (rank == 1) return await(over);  // never calls
    const ncclComm_t mine = comm.release();
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    std::vector<float> in(50000, 1), out(50000);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(ncclAllReduce(in.data(), out.data(), in.size(), ncclFloat, ncclSum, mine, nullptr),
                ncclSuccess);
    }
    std::thread aborter([&] {
      std::this_thread::sleep_for(50ms);
      EXPECT_EQ(ncclCommAbort(mine), ncclSuccess);
    });
    EXPECT_NE(ncclGroupEnd(), ncclSuccess);
    aborter.join();
    over = true;
  });
}

// One thread aborts both communicators of a group, in either order.
TEST(Abort, OfOneCommunicatorDoesNotWaitForTheGroupsOthers) {
  const ncclUniqueId x = newId(), y = newId();
  std::atomic<bool> over{false};
  onThreads(2, [&](int rank) {
    Comm first(x, 2, rank), second(y, 2, rank);
    if (rank == 1) return await(over);
    const ncclComm_t a = first.release(), b = second.release();
    std::vector<float> data(100, 1);
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    for (const ncclComm_t comm : {a, b}) {
      EXPECT_EQ(ncclAllReduce(data.data(), data.data(), 100, ncclFloat, ncclSum, comm, nullptr), ncclSuccess);
    }
    std::thread aborter([&] {
      std::this_thread::sleep_for(50ms);
      EXPECT_EQ(ncclCommAbort(a), ncclSuccess);
      EXPECT_EQ(ncclCommAbort(b), ncclSuccess);
    });
    EXPECT_NE(ncclGroupEnd(), ncclSuccess);
    aborter.join();
    over = true;
  });
}

TEST(Abort, FreesADestroyThatWaitsForACall) {
  const ncclUniqueId id = newId();
  std::atomic<bool> over{false};
  onThreads(2, [&](int rank) {
    Comm comm(id, 2, rank);
    if (rank == 1) return await(over);
    const ncclComm_t mine = comm.release();
    std::thread destroyer([&] {
      std::this_thread::sleep_for(50ms);
      EXPECT_EQ(ncclCommDestroy(mine), ncclSuccess);
    });
    std::thread aborter([&] {
      std::this_thread::sleep_for(100ms);
      ncclCommAbort(mine);  // refused if it comes before the destroy's end is in sight; never waits
    });
    EXPECT_NE(call(mine, 100), ncclSuccess);
    destroyer.join();
    aborter.join();
    over = true;
  });
}

TEST(Init, OfARankOutOfRangeIsReportedToAll) {
  const ncclUniqueId id = newId();
  onThreads(2, [&](int rank) {
    ncclComm_t comm = nullptr;
    EXPECT_NE(ncclCommInitRank(&comm, 2, id, rank == 0 ? 0 : 2), ncclSuccess);
    EXPECT_TRUE(contains(lastError(), "rank 2")) << lastError();
  });
}

TEST(Init, RefusesDevicesThatAreNotThere) {
  ncclComm_t comms[2] = {};
  for (const std::vector<int>& devices : {std::vector<int>{0, -3}, std::vector<int>{99999, 0}}) {
    EXPECT_EQ(ncclCommInitAll(comms, 2, devices.data()), ncclInvalidArgument);
    EXPECT_TRUE(contains(lastError(), "devlist")) << lastError();
  }
}

TEST(Destroy, WithoutTakingPartIsReportedToThePeers) {
  const ncclUniqueId id = newId();
  onThreads(3, [&](int rank) {
    const Comm comm(id, 3, rank);
    expectSum(comm, 3, rank, 100);
    if (rank == 1) return;  // destroys
    EXPECT_EQ(call(comm, 100), ncclRemoteError) << lastError();
  });
}

TEST(Handle, IsNotUsedAgainAtOnce) {
  ncclComm_t old = nullptr, next = nullptr;
  ASSERT_EQ(ncclCommInitAll(&old, 1, nullptr), ncclSuccess);
  ASSERT_EQ(ncclCommDestroy(old), ncclSuccess);
  ASSERT_EQ(ncclCommInitAll(&next, 1, nullptr), ncclSuccess);
  EXPECT_NE(old, next);
  EXPECT_EQ(ncclCommDestroy(old), ncclInvalidArgument);
  EXPECT_EQ(call(next, 5), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(next), ncclSuccess);
}

TEST(Group, ReportsWrongTypesAndPointersAtItsEnd) {
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess);
  float x = 5, y = 0;
  for (int fault = 0; fault < 2; ++fault) {
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(&x, &y, 1, ncclFloat, ncclSum, comm, nullptr), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(fault == 0 ? nullptr : &x, &y, 1, outOfRange<ncclDataType_t>(fault == 0 ? 7 : 77),
                            ncclSum, comm, nullptr),
              ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
    EXPECT_TRUE(contains(lastError(), "ncclAllReduce")) << lastError();
    EXPECT_EQ(y, 0);
  }
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

// A communicator that can't be used must not make another one of the group count a call that never ran.
TEST(Group, ThatFailsLeavesTheOthersNumbersAlone) {
  ncclComm_t dead = nullptr;
  ASSERT_EQ(ncclCommInitAll(&dead, 1, nullptr), ncclSuccess);
  ASSERT_EQ(ncclCommFinalize(dead), ncclSuccess);
  std::vector<ncclComm_t> comms(2);
  ASSERT_EQ(ncclCommInitAll(comms.data(), 2, nullptr), ncclSuccess);
  float x = 5, y = 0;
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(&x, &y, 1, ncclFloat, ncclSum, comms[0], nullptr), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(&x, &y, 1, ncclFloat, ncclSum, dead, nullptr), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  onThreads(2, [&](int rank) { expectSum(comms[static_cast<size_t>(rank)], 2, rank, 100); });
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(dead), ncclSuccess);
}

TEST(Group, RefusesACommunicatorThatDiedInside) {
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess);
  float x = 5, y = 0;
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(&x, &y, 1, ncclFloat, ncclSum, comm, nullptr), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_EQ(y, 0);
}

TEST(Death, OfAPeerIsReported) {
  for (const int victim : {0, 1, 2}) {
    const ncclUniqueId id = newId();
    SharedValue<std::atomic<int>> done;
    onProcesses(
        3,
        [&](int rank) {
          Comm comm(id, 3, rank);
          expectSum(comm, 3, rank, 1000);
          ++*done;
          // Not while others are still in that call: it may fail them.
          while (rank == victim && *done < 3) std::this_thread::yield();
          if (rank == victim) ::kill(::getpid(), SIGKILL);
          EXPECT_EQ(call(comm, 100000), ncclRemoteError) << lastError();
          EXPECT_TRUE(contains(lastError(), "rank " + std::to_string(victim))) << lastError();
          return 0;
        },
        [&](int rank, int status) {
          return rank == victim ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0;
        });
  }
}

// Trees have inner ranks with more rings than leaves: slots that fit some ranks' regions and not others'.
TEST(Connections, ThatOneRankCannotMakeFailTheCallOnEveryRank) {
  const Environment environment{
      {"NCCL_ALGO", "tree"}, {"TOPOCCL_CHANNELS", "2"}, {"TOPOCCL_SLOT_BYTES", "1048576"}};
  const ncclUniqueId id = newId();
  std::atomic<int> namedRoom{0}, namedPeer{0};
  onThreads(5, [&](int rank) {
    const Comm comm(id, 5, rank);
    EXPECT_NE(call(comm, 1000), ncclSuccess);
    namedRoom += contains(lastError(), "TOPOCCL_SLOT_BYTES") ? 1 : 0;
    namedPeer += contains(lastError(), "gave up") || contains(lastError(), "failed") ? 1 : 0;
    EXPECT_NE(call(comm, 1000), ncclSuccess) << "a poisoned communicator must refuse";
  });
  EXPECT_GT(namedRoom + namedPeer, 0);
}

TEST(Settings, OfBadValueAreRefusedByName) {
  for (const auto& [name, value] :
       std::vector<std::pair<const char*, std::string>>{{"NCCL_ALGO", "circle"},
                                                        {"NCCL_PROTO", "LL512"},
                                                        {"NCCL_ALGO", "nvls"},
                                                        {"TOPOCCL_DEVICE", "cuda"}}) {
    const Environment environment{{name, value}};
    ncclComm_t comm = nullptr;
    EXPECT_NE(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess);
    EXPECT_TRUE(contains(lastError(), name) && contains(lastError(), value)) << lastError();
  }
}

TEST(Life, OfManyCommunicatorsLeavesNothingBehind) {
  const auto descriptors = [] {
    int count = 0;
    for (int fd = 0; fd < 1024; ++fd) count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    return count;
  };
  const auto once = [] {
    const ncclUniqueId id = newId();
    onThreads(2, [&](int rank) {
      const Comm comm(id, 2, rank);
      expectSum(comm, 2, rank, 100);
    });
  };
  once();
  const int before = descriptors();
  const int rounds = std::getenv("TOPOCCL_TEST_REDUCED") != nullptr ? 10 : 50;
  for (int i = 0; i < rounds; ++i) once();
  for (int i = 0; i < 100 && descriptors() > before; ++i) std::this_thread::sleep_for(20ms);
  EXPECT_LE(descriptors(), before);
}

// What other threads may do meanwhile does not hide the call from an abort; one that comes later is refused.
TEST(Failure, AbortWaitsForACallBesideOtherFunctions) {
  std::multiset<ncclResult_t> results;
  for (int round = 0; round < 10; ++round) {
    ncclComm_t comms[2];
    ASSERT_EQ(ncclCommInitAll(comms, 2, nullptr), ncclSuccess);
    std::jthread calls([&] { results.insert(call(comms[0], 10)); });
    std::this_thread::sleep_for(10ms);
    float scalar = 2;
    ncclRedOp_t op;
    void* handle = nullptr;
    EXPECT_EQ(ncclCommRegister(comms[0], &scalar, 4, &handle), ncclSuccess);
    EXPECT_EQ(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat, ncclScalarDevice, comms[0]), ncclSuccess);
    EXPECT_EQ(ncclRedOpDestroy(op, comms[0]), ncclSuccess);
    EXPECT_EQ(ncclCommDeregister(comms[0], handle), ncclSuccess);
    for (ncclComm_t comm : {comms[0], comms[1]}) EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  }
  EXPECT_NE(results.count(ncclInvalidUsage), 0U);
  EXPECT_EQ(results.count(ncclInvalidUsage) + results.count(ncclInvalidArgument), 10U);
}

}  // namespace
}  // namespace topoccl::test
