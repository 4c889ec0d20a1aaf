// Ranks that disagree: each is told, with both calls named, whether it waits, has returned, or waits for a
// rank that waits for it. Ranks that agree are never told so, however late they come.
#include <algorithm>

#include "communicator/calls.h"
#include "communicator/ranks.h"

namespace topoccl::test {
namespace {

using namespace std::chrono_literals;

// Waits for the communicator's state to be other than success.
ncclResult_t awaitState(ncclComm_t comm, std::chrono::seconds limit) {
  ncclResult_t state = ncclSuccess;
  for (const auto end = std::chrono::steady_clock::now() + limit; std::chrono::steady_clock::now() < end;) {
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
    if (state != ncclSuccess) return state;
    std::this_thread::sleep_for(5ms);
  }
  return state;
}

struct Disagreement {
  const char* name;
  std::vector<std::vector<Call>> calls;  // by rank
  std::vector<std::string> named;        // in every rank's error; alternatives are separated by '|'
};

std::ostream& operator<<(std::ostream& out, const Disagreement& how) {
  return out << how.name;
}

bool containsOneOf(const std::string& text, const std::string& alternatives) {
  for (size_t begin = 0; begin <= alternatives.size();) {
    const size_t end = std::min(alternatives.find('|', begin), alternatives.size());
    if (text.find(alternatives.substr(begin, end - begin)) != std::string::npos) return true;
    begin = end + 1;
  }
  return false;
}

// Calls of its own until one fails; then, or when all have returned, the state must say why.
void expectToBeTold(const Disagreement& how, int rank, ncclComm_t comm) {
  const auto ranks = static_cast<int>(how.calls.size());
  ncclResult_t result = ncclSuccess;
  for (const Call& call : how.calls[static_cast<size_t>(rank)]) {
    Buffers buffers(bytesOf(call, ranks));
    result = run(call, comm, buffers);
    buffers.expectGuards();
    if (result != ncclSuccess) break;
  }
  if (result == ncclSuccess) result = awaitState(comm, 10s);
  EXPECT_EQ(result, ncclInvalidUsage) << "rank " << rank << ": " << lastError();
  EXPECT_EQ(awaitState(comm, 10s), ncclInvalidUsage) << "rank " << rank << ": " << lastError();
  Buffers buffers(bytesOf({}, ranks));
  EXPECT_EQ(run({}, comm, buffers), ncclInvalidUsage) << "a poisoned communicator must refuse";
  for (const std::string& part : how.named)
    EXPECT_TRUE(containsOneOf(lastError(), part))
        << "rank " << rank << " was not told of " << part << ": " << lastError();
}

class Mismatch : public testing::TestWithParam<Disagreement> {};

TEST_P(Mismatch, IsToldToAllProcesses) {
  const Disagreement& how = GetParam();
  const auto ranks = static_cast<int>(how.calls.size());
  const ncclUniqueId id = newId();
  SharedValue<std::atomic<int>> done;
  onProcesses(ranks, [&](int rank) {
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, ranks, id, rank), ncclSuccess) << lastError();
    expectToBeTold(how, rank, comm);
    ++*done;
    while (*done < ranks) ::usleep(1000);
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    return 0;
  });
}

TEST_P(Mismatch, IsToldToAllThreads) {
  const Disagreement& how = GetParam();
  const auto ranks = static_cast<int>(how.calls.size());
  const ncclUniqueId id = newId();
  std::atomic<int> done{0};
  onThreads(ranks, [&](int rank) {
    Comm comm(id, ranks, rank);
    // The last error is that of a process; all ranks are told the same.
    expectToBeTold(how, rank, comm);
    ++done;
    while (done < ranks) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(ncclCommAbort(comm.release()), ncclSuccess);
  });
}

using Calls = std::vector<Call>;
constexpr size_t kLarge = 1 << 20;

const Disagreement kDisagreements[] = {
    {"counts",
     {Calls{{}, {Call::AllReduce, 5}}, Calls{{}, {Call::AllReduce, 6}}},
     {"all_reduce #2 float32 x 5 sum", "all_reduce #2 float32 x 6 sum", "rank 0", "rank 1"}},
    {"large_counts",
     {Calls{{Call::AllReduce, kLarge}}, Calls{{Call::AllReduce, kLarge + 1}}},
     {"all_reduce #1 float32 x 1048576 sum", "all_reduce #1 float32 x 1048577 sum"}},
    {"small_and_large",
     {Calls{{Call::AllReduce, 5}}, Calls{{Call::AllReduce, kLarge}}, Calls{{Call::AllReduce, 5}}},
     {"float32 x 5 sum", "float32 x 1048576 sum", "rank 1"}},
    {"types",
     {Calls{{Call::AllReduce, 6}}, Calls{{Call::AllReduce, 6, 0, ncclInt32}}},
     {"float32 x 6 sum", "int32 x 6 sum"}},
    {"operators",
     {Calls{{Call::AllReduce, 6}}, Calls{{Call::AllReduce, 6, 0, ncclFloat, ncclMax}}},
     {"float32 x 6 sum", "float32 x 6 max"}},
    {"collectives",
     {Calls{{Call::AllGather, 64}}, Calls{{Call::AllToAll, 64}}},
     {"all_gather #1", "all_to_all #1"}},
    {"order",
     {Calls{{}, {Call::AllReduce, 8}, {Call::ReduceScatter, 8}},
      Calls{{}, {Call::ReduceScatter, 8}, {Call::AllReduce, 8}}},
     {"all_reduce #2", "reduce_scatter #2"}},
    {"roots_of_reduce", {Calls{{Call::Reduce, 8, 0}}, Calls{{Call::Reduce, 8, 1}}}, {"root 0", "root 1"}},
    // Both think that they are the root, fill a slot and return.
    {"roots_of_broadcast",
     {Calls{{Call::Broadcast, 8, 0}}, Calls{{Call::Broadcast, 8, 1}}},
     {"broadcast #1", "root 0", "root 1"}},
    {"roots_of_broadcast_then_a_call",
     {Calls{{Call::Broadcast, 8, 0}, {}}, Calls{{Call::Broadcast, 8, 1}, {}}},
     {"broadcast #1", "root 0", "root 1"}},
    {"roots_of_broadcast_of_three",
     {Calls{{Call::Broadcast, 8, 0}}, Calls{{Call::Broadcast, 8, 1}}, Calls{{Call::Broadcast, 8, 0}}},
     {"broadcast #1", "root 0", "root 1"}},
    {"sizes_of_a_message",
     {Calls{{Call::Send, 10, 1}}, Calls{{Call::Receive, 11, 0}}},
     {"send #1, 40 bytes", "recv #1 float32 x 11 from rank 0"}},
    {"order_of_messages",
     {Calls{{Call::Send, 10, 1}, {Call::Send, 20, 1}}, Calls{{Call::Receive, 20, 0}, {Call::Receive, 10, 0}}},
     {"send #1, 40 bytes", "recv #1 float32 x 20 from rank 0"}},
    {"both_receive",
     {Calls{{Call::Receive, 8, 1}}, Calls{{Call::Receive, 8, 0}}},
     {"rank 0 in recv #1 float32 x 8 from rank 1", "rank 1 in recv #1 float32 x 8 from rank 0",
      "wait for each other"}},
    {"both_send",
     {Calls{{Call::Send, kLarge, 1}}, Calls{{Call::Send, kLarge, 0}}},
     {"rank 0 in send #1", "rank 1 in send #1"}},
    {"a_receive_and_a_collective",
     {Calls{{}, {Call::Receive, 8, 1}}, Calls{{}, {Call::AllReduce, 8}}},
     {"rank 0 in recv #1", "rank 1 in all_reduce #2"}},
    {"a_first_receive_and_a_first_collective",
     {Calls{{Call::Receive, 8, 1}}, Calls{{Call::AllReduce, 8}}},
     {"rank 0 in recv #1", "rank 1 in all_reduce #1"}},
    {"a_circle_of_receives",
     {Calls{{Call::Receive, 8, 1}}, Calls{{Call::Receive, 8, 2}}, Calls{{Call::Receive, 8, 3}},
      Calls{{Call::Receive, 8, 0}}},
     {"rank 0 in recv", "rank 1 in recv", "rank 2 in recv", "rank 3 in recv"}},
    // Rank 2 has come to the sum and waits for rank 1, which waits for a message of rank 0, which is in the
    // sum.
    {"a_circle_through_a_collective",
     {Calls{{}, {Call::AllReduce, 8}}, Calls{{}, {Call::Receive, 8, 0}}, Calls{{}, {Call::AllReduce, 8}}},
     {"rank 1 in recv #1 float32 x 8 from rank 0", "in all_reduce #2"}},
};

INSTANTIATE_TEST_SUITE_P(Ways, Mismatch, testing::ValuesIn(kDisagreements),
                         [](const auto& parameter) { return std::string(parameter.param.name); });

TEST(Mismatch, OfCallsThatAllReturnedIsToldAtFinalize) {
  const ncclUniqueId id = newId();
  std::atomic<int> returned{0};
  onThreads(2, [&](int rank) {
    Comm comm(id, 2, rank);
    Buffers buffers(1000);
    EXPECT_EQ(run({Call::Broadcast, 8, rank}, comm, buffers), ncclSuccess);
    ++returned;
    while (returned < 2) std::this_thread::yield();
    EXPECT_EQ(ncclCommFinalize(comm), ncclInvalidUsage);
    EXPECT_EQ(ncclCommAbort(comm.release()), ncclSuccess);
  });
}

// In a group all lines run side by side: a circle of receives with the sends beside them is none. One send is
// missing.
TEST(Mismatch, OfGroupsNamesTheMissingMessage) {
  const ncclUniqueId id = newId();
  constexpr int kRanks = 3;
  onProcesses(kRanks, [&](int rank) {
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, kRanks, id, rank), ncclSuccess);
    Buffers buffers(1000);
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    for (int peer = 0; peer < kRanks; ++peer) {
      if (peer == rank) continue;
      EXPECT_EQ(run({Call::Receive, 8, peer}, comm, buffers), ncclSuccess);
      if (rank == 1 && peer == 2) continue;
      EXPECT_EQ(run({Call::Send, 8, peer}, comm, buffers), ncclSuccess);
    }
    ncclResult_t result = ncclGroupEnd();
    // Those that have all they need go on, to a call that the other is not going to make.
    if (result == ncclSuccess) result = run({}, comm, buffers);
    EXPECT_EQ(result, ncclInvalidUsage) << lastError();
    EXPECT_NE(lastError().find("rank 2 in recv #1 float32 x 8 from rank 1 waits for rank 1"),
              std::string::npos)
        << lastError();
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    return 0;
  });
}

}  // namespace
}  // namespace topoccl::test
