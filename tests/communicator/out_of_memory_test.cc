// Wherever memory runs out while calls are issued: they run, or they fail and everybody hears of it. Nothing
// is left half-done, and nobody waits for what will never come.
#include "communicator/ranks.h"
#include "communicator/streams.h"
#include "support/allocations.h"

namespace topoccl::test {
namespace {

ncclResult_t stateOf(ncclComm_t comm) {
  ncclResult_t state = ncclInternalError;
  EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
  return state;
}

// Runs `trial` with the first, second, third, ... allocation of this thread failing, and more sparsely among
// those behind, until all went well.
template <class Trial>
void failEverywhere(const Trial& trial) {
  uint64_t before = 0;
  while (trial(before)) before += 1 + before / 16;
  EXPECT_GT(before, 0U);
}

class OutOfMemory : public testing::TestWithParam<bool> {
  const Environment environment_{{"TOPOCCL_COLLECTIVE_TIMEOUT", "5"}};  // what waits in vain says so
};
INSTANTIATE_TEST_SUITE_P(OnStreams, OutOfMemory, testing::Bool());

TEST_P(OutOfMemory, AGroupRunsWholeOrNotAtAll) {
  failEverywhere([&](uint64_t before) {
    Comms comms(2);
    const Stream streams[2];
    Words words[2] = {Words(10, 1), Words(10, 1)};
    failAllocationAfter(before);
    bool collected = ncclGroupStart() == ncclSuccess;
    for (int rank = 0; rank < 2; ++rank) {
      cudaStream_t stream = GetParam() ? static_cast<cudaStream_t>(streams[rank]) : nullptr;
      collected &= sum(words[rank], comms[rank], stream) == ncclSuccess;
    }
    const ncclResult_t ended = ncclGroupEnd();
    const bool failed = hasFailedAnAllocation();
    EXPECT_TRUE(collected || ended != ncclSuccess) << before;
    for (const Stream& stream : streams) {
      const ncclResult_t result = stream.synchronize();
      EXPECT_TRUE(ended != ncclSuccess || result == ncclSuccess) << before << lastError();
    }
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_TRUE(ended == ncclSuccess ? words[rank] == Words(10, 2) : true) << before;
      EXPECT_EQ(ncclCommAbort(comms.release(rank)), ncclSuccess) << before << lastError();
    }
    return failed;
  });
}

// A call that was refused can be made again, or the communicator says that it can't, to its peer too.
TEST_P(OutOfMemory, ACallIsMadeOrRefused) {
  failEverywhere([&](uint64_t before) {
    Comms comms(2);
    const Stream streams[2];
    Words words[2] = {Words(10, 1), Words(10, 1)};
    failAllocationAfter(before);
    const ncclResult_t issued = sum(words[0], comms[0], streams[0]);
    const bool failed = hasFailedAnAllocation();
    const ncclResult_t state = stateOf(comms[0]);
    if (issued != ncclSuccess && state == ncclSuccess) {
      EXPECT_EQ(sum(words[0], comms[0], streams[0]), ncclSuccess) << before << lastError();
    }
    const ncclResult_t peers =
        sum(words[1], comms[1], GetParam() ? static_cast<cudaStream_t>(streams[1]) : nullptr);
    const bool works = peers == ncclSuccess && streams[1].synchronize() == ncclSuccess;
    EXPECT_EQ(works, state == ncclSuccess) << before << lastError();
    EXPECT_EQ(streams[0].synchronize() == ncclSuccess && words[0] == Words(10, 2), works) << before;
    for (int rank = 0; rank < 2; ++rank)
      EXPECT_EQ(ncclCommAbort(comms.release(rank)), ncclSuccess) << before << lastError();
    return failed;
  });
}

// While it runs, alone or as a group.
class OutOfMemoryInGroup : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Both, OutOfMemoryInGroup, testing::Bool());

TEST_P(OutOfMemoryInGroup, ACallThatRunsFailsOnAllRanks) {
  const auto call = [](Words& words, ncclComm_t comm) {
    if (GetParam() && ncclGroupStart() != ncclSuccess) return ncclSystemError;
    const ncclResult_t result = sum(words, comm, nullptr);
    return GetParam() ? ncclGroupEnd() : result;
  };
  const Environment environment{{"TOPOCCL_COLLECTIVE_TIMEOUT", "5"}};
  failEverywhere([&](uint64_t before) {
    Comms comms(2);
    Words words[2] = {Words(10, 1), Words(10, 1)};
    ncclResult_t peers = ncclInternalError;
    std::thread peer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));  // so that rank 0 waits, and looks around
      peers = call(words[1], comms[1]);
    });
    failAllocationAfter(before);
    ncclResult_t result = call(words[0], comms[0]);
    const bool failed = hasFailedAnAllocation();
    if (result != ncclSuccess && stateOf(comms[0]) == ncclSuccess) result = call(words[0], comms[0]);
    peer.join();
    EXPECT_EQ(result == ncclSuccess, peers == ncclSuccess)
        << before << ' ' << result << ' ' << peers << lastError();
    EXPECT_TRUE(result != ncclSuccess || words[0] == Words(10, 2)) << before;
    for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(ncclCommAbort(comms.release(rank)), ncclSuccess);
    return failed;
  });
}

TEST(OutOfMemoryToo, AbortSucceeds) {
  failEverywhere([&](uint64_t before) {
    Comms comms(2);
    const Stream stream;
    Words words[2] = {Words(10, 1), Words(10, 1)};
    for (int call = 0; call < 3; ++call) EXPECT_EQ(sum(words[0], comms[0], stream), ncclSuccess);
    failAllocationAfter(before);
    const ncclResult_t aborted = ncclCommAbort(comms.release(0));
    const bool failed = hasFailedAnAllocation();
    EXPECT_EQ(aborted, ncclSuccess) << before;
    EXPECT_EQ(stream.synchronize(), ncclInvalidUsage) << before;
    EXPECT_EQ(sum(words[1], comms[1], nullptr), ncclRemoteError) << before;
    EXPECT_EQ(ncclCommAbort(comms.release(1)), ncclSuccess);
    return failed;
  });
}

}  // namespace
}  // namespace topoccl::test
