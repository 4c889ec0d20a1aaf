// Set-up and calls that do not block: ncclInProgress until they are done, and what may happen meanwhile.
#include <deque>

#include "communicator/movements.h"
#include "communicator/non_blocking.h"
#include "communicator/ranks.h"
#include "topoccl.h"

namespace topoccl::test {
namespace {

ncclResult_t stateOf(ncclComm_t comm) {
  ncclResult_t state = ncclInternalError;
  EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess) << lastError();
  return state;
}

ncclComm_t begin(const ncclUniqueId& id, int ranks, int rank) {
  ncclConfig_t config = nonBlocking();
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, ranks, id, rank, &config), ncclInProgress) << lastError();
  EXPECT_NE(comm, nullptr);
  return comm;
}

// One thread begins all ranks one after the other, which a blocking init could not.
TEST(NonBlocking, OneThreadBeginsAllRanks) {
  const ncclUniqueId id = newId();
  std::vector<ncclComm_t> comms;
  for (int rank = 0; rank < 3; ++rank) comms.push_back(begin(id, 3, rank));
  for (ncclComm_t comm : comms) EXPECT_EQ(awaitState(comm), ncclSuccess) << lastError();
  onThreads(3, [&](int rank) {
    ncclComm_t comm = comms[static_cast<size_t>(rank)];
    expectMovement(Movement::AllReduce, comm, 3, rank, -1, 1000, false);
    EXPECT_EQ(ncclCommFinalize(comm), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

TEST(NonBlocking, GroupsSayInProgressAtTheirEnd) {
  const ncclUniqueId id = newId();
  std::vector<ncclComm_t> comms(3);
  ncclConfig_t config = nonBlocking();
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_EQ(ncclCommInitRankConfig(&comms[static_cast<size_t>(rank)], 3, id, rank, &config), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
  for (ncclComm_t comm : comms) EXPECT_EQ(awaitState(comm), ncclSuccess) << lastError();
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(NonBlocking, RefusesCallsUntilItIsThere) {
  ncclComm_t comm = begin(newId(), 2, 0);  // rank 1 never comes
  EXPECT_EQ(stateOf(comm), ncclInProgress);
  int rank = -1;
  EXPECT_EQ(ncclCommUserRank(comm, &rank), ncclInvalidArgument);
  EXPECT_NE(lastError().find("still being set up"), std::string::npos) << lastError();
  float x = 0;
  EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, comm, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  EXPECT_EQ(ncclCommUserRank(comm, &rank), ncclInvalidArgument);
  EXPECT_NE(lastError().find("destroyed or aborted"), std::string::npos) << lastError();
}

TEST(NonBlocking, CanBeDestroyedOrAbortedInTheMiddle) {
  for (const auto end : {ncclCommDestroy, ncclCommAbort})
    for (int round = 0; round < 20; ++round) {
      ncclComm_t comm = begin(newId(), 2, 0);
      if (round % 2 == 1) std::this_thread::sleep_for(std::chrono::milliseconds(round));
      EXPECT_EQ(end(comm), ncclSuccess) << lastError();
    }
}

TEST(NonBlocking, FailuresAreTheState) {
  const Environment environment{{"TOPOCCL_INIT_TIMEOUT", "0.2"}};
  ncclComm_t comm = begin(newId(), 2, 0);  // rank 1 never comes
  EXPECT_EQ(awaitState(comm), ncclRemoteError);
  EXPECT_NE(lastError().find("rank 1 of 2 did not join"), std::string::npos) << lastError();
  int rank = -1;
  EXPECT_EQ(ncclCommUserRank(comm, &rank), ncclRemoteError);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

// One thread calls on all ranks, one after the other.
TEST(NonBlocking, CallsRunInTheBackground) {
  constexpr int kRanks = 3;
  const ncclUniqueId id = newId();
  std::vector<ncclComm_t> comms;
  for (int rank = 0; rank < kRanks; ++rank) comms.push_back(begin(id, kRanks, rank));
  for (ncclComm_t comm : comms) EXPECT_EQ(awaitState(comm), ncclSuccess) << lastError();
  std::deque<MovementCall> calls;
  for (const size_t count : {size_t{10}, size_t{100'000}})
    for (const Movement movement : kMovements)
      for (int rank = 0; rank < kRanks; ++rank) {
        ncclComm_t comm = comms[static_cast<size_t>(rank)];
        EXPECT_EQ(
            calls.emplace_back(movement, comm, kRanks, rank, hasRoot(movement) ? 1 : -1, count, false).run(),
            ncclInProgress)
            << lastError();
      }
  for (ncclComm_t comm : comms) EXPECT_EQ(awaitState(comm), ncclSuccess) << lastError();
  for (const MovementCall& call : calls) EXPECT_EQ(call.flaw(), "");
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(NonBlocking, GroupsOfCallsAndFinalizeAreInProgress) {
  const ncclUniqueId id = newId();
  std::vector<ncclComm_t> comms{begin(id, 2, 0), begin(id, 2, 1)};
  for (ncclComm_t comm : comms) EXPECT_EQ(awaitState(comm), ncclSuccess) << lastError();
  std::vector<std::vector<uint32_t>> words{{1, 2, 3}, {4, 5, 6}};
  const auto send = [&](size_t rank) {
    return ncclSend(words[rank].data(), 3, ncclUint32, 1, comms[rank], nullptr);
  };
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(send(0), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(words[0].data(), words[0].data(), 0, ncclUint32, ncclSum, comms[0], nullptr),
            ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
  EXPECT_EQ(ncclCommFinalize(comms[0]), ncclInProgress);
  ncclResult_t state = ncclSuccess;
  EXPECT_EQ(ncclCommGetAsyncError(comms[0], &state), ncclSuccess);
  EXPECT_EQ(state, ncclInProgress);  // rank 1 has not called
  EXPECT_EQ(ncclRecv(words[1].data(), 3, ncclUint32, 0, comms[1], nullptr), ncclInProgress);
  EXPECT_EQ(ncclAllReduce(words[1].data(), words[1].data(), 0, ncclUint32, ncclSum, comms[1], nullptr),
            ncclInProgress);
  for (ncclComm_t comm : comms) EXPECT_EQ(awaitState(comm), ncclSuccess) << lastError();
  EXPECT_EQ(words[1], words[0]);
  EXPECT_EQ(ncclAllReduce(words[0].data(), words[0].data(), 1, ncclUint32, ncclSum, comms[0], nullptr),
            ncclInvalidUsage);
  EXPECT_NE(lastError().find("finalized"), std::string::npos) << lastError();
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(NonBlocking, AbortEndsACallInTheBackground) {
  const ncclUniqueId id = newId();
  std::vector<ncclComm_t> comms{begin(id, 2, 0), begin(id, 2, 1)};
  for (ncclComm_t comm : comms) EXPECT_EQ(awaitState(comm), ncclSuccess) << lastError();
  float x = 0;
  for (int call = 0; call < 3; ++call) {
    EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, comms[0], nullptr), ncclInProgress);
  }
  EXPECT_EQ(ncclCommAbort(comms[0]), ncclSuccess);
  EXPECT_EQ(awaitState(comms[1]), ncclRemoteError);
  EXPECT_EQ(ncclCommAbort(comms[1]), ncclSuccess);
}

// With a stream a call is issued when it returns: nothing to poll for.
TEST(NonBlocking, CallsOnStreamsAreNotInProgress) {
  const ncclUniqueId id = newId();
  std::vector<ncclComm_t> comms{begin(id, 2, 0), begin(id, 2, 1)};
  for (ncclComm_t comm : comms) EXPECT_EQ(awaitState(comm), ncclSuccess) << lastError();
  cudaStream_t stream = nullptr;
  ASSERT_EQ(topocclStreamCreate(&stream), ncclSuccess);
  float x = 1, y = 1;
  EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, comms[0], stream), ncclSuccess);
  EXPECT_EQ(stateOf(comms[0]), ncclSuccess);  // rank 1 has not called
  EXPECT_EQ(topocclStreamQuery(stream), ncclInProgress);
  EXPECT_EQ(completed(ncclAllReduce(&y, &y, 1, ncclFloat, ncclSum, comms[1], nullptr), comms[1]),
            ncclSuccess);
  EXPECT_EQ(topocclStreamSynchronize(stream), ncclSuccess);
  EXPECT_EQ(x, 2);
  EXPECT_EQ(topocclStreamDestroy(stream), ncclSuccess);
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

// Neither touches what the set-up has not made yet.
TEST(NonBlocking, IsDestroyedAndAbortedAtTheSameTime) {
  for (int round = 0; round < 30; ++round) {
    ncclComm_t comm = begin(newId(), 2, 0);  // rank 1 never comes
    std::thread destroys([&] { static_cast<void>(ncclCommDestroy(comm)); });
    static_cast<void>(ncclCommAbort(comm));  // one of the two ends it
    destroys.join();
    int rank = -1;
    EXPECT_EQ(ncclCommUserRank(comm, &rank), ncclInvalidArgument);
  }
}

TEST(NonBlocking, AGroupOfInitsAndCallsDoesBoth) {
  ncclComm_t live = nullptr, comm = nullptr;
  ASSERT_EQ(ncclCommInitAll(&live, 1, nullptr), ncclSuccess);
  ncclConfig_t config = nonBlocking();
  float in = 3, out = 0;
  const ncclUniqueId id = newId();
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(&in, &out, 1, ncclFloat, ncclSum, live, nullptr), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
  EXPECT_EQ(out, 3);
  EXPECT_EQ(awaitState(comm), ncclSuccess);
  for (ncclComm_t it : {live, comm}) EXPECT_EQ(ncclCommDestroy(it), ncclSuccess);
}

TEST(NonBlocking, AGroupTellsAFailureSoonerThanProgress) {
  const Environment environment{{"TOPOCCL_INIT_TIMEOUT", "0.2"}};
  ncclComm_t pending = nullptr, failing = nullptr;
  ncclConfig_t config = nonBlocking();
  const ncclUniqueId ids[] = {newId(), newId()};
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclCommInitRankConfig(&pending, 2, ids[0], 0, &config), ncclSuccess);
  EXPECT_EQ(ncclCommInitRank(&failing, 2, ids[1], 0), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclRemoteError);
  EXPECT_EQ(ncclCommAbort(pending), ncclSuccess);
}

}  // namespace
}  // namespace topoccl::test
