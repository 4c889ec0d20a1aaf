// Communicators made of others' ranks.
#include "communicator/movements.h"
#include "communicator/ranks.h"

namespace topoccl::test {
namespace {

std::string lastError() {
  return ncclGetLastError(nullptr);
}

// What a rank of a new communicator must find, and that it works.
void expectWorks(ncclComm_t comm, int ranks, int rank) {
  int found = -1;
  ASSERT_EQ(ncclCommCount(comm, &found), ncclSuccess);
  ASSERT_EQ(found, ranks);
  ASSERT_EQ(ncclCommUserRank(comm, &found), ncclSuccess);
  ASSERT_EQ(found, rank);
  for (const Movement movement : {Movement::AllReduce, Movement::AllGather})
    expectMovement(movement, comm, ranks, rank, -1, 1000, false);
}

TEST(Split, DividesByColour) {
  const ncclUniqueId id = newId();
  onProcesses(5, [&](int rank) {
    const Comm comm(id, 5, rank);
    ncclComm_t part = nullptr;
    EXPECT_EQ(ncclCommSplit(comm, rank % 2, 0, &part, nullptr), ncclSuccess) << lastError();
    expectWorks(part, rank % 2 == 0 ? 3 : 2, rank / 2);
    expectMovement(Movement::AllReduce, comm, 5, rank, -1, 1000, false);
    EXPECT_EQ(ncclCommDestroy(part), ncclSuccess);
    return 0;
  });
}

TEST(Split, OrdersByKeyThenRank) {
  const ncclUniqueId id = newId();
  onThreads(4, [&](int rank) {
    const Comm comm(id, 4, rank);
    ncclComm_t reversed = nullptr, pairs = nullptr;
    ASSERT_EQ(ncclCommSplit(comm, 7, -rank, &reversed, nullptr), ncclSuccess) << lastError();
    expectWorks(reversed, 4, 3 - rank);
    // Ranks 2 and 3 come first, each pair in rank order.
    ASSERT_EQ(ncclCommSplit(comm, 0, rank < 2, &pairs, nullptr), ncclSuccess) << lastError();
    expectWorks(pairs, 4, (rank + 2) % 4);
    EXPECT_EQ(ncclCommDestroy(reversed), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(pairs), ncclSuccess);
  });
}

TEST(Split, LeavesOutRanksWithoutColour) {
  const ncclUniqueId id = newId();
  onThreads(3, [&](int rank) {
    const Comm comm(id, 3, rank);
    auto part = reinterpret_cast<ncclComm_t>(1);
    const int color = rank == 1 ? NCCL_SPLIT_NOCOLOR : 0;
    ASSERT_EQ(ncclCommSplit(comm, color, 0, &part, nullptr), ncclSuccess) << lastError();
    if (rank == 1) {
      EXPECT_EQ(part, nullptr);
      return;
    }
    expectWorks(part, 2, rank / 2);
    EXPECT_EQ(ncclCommDestroy(part), ncclSuccess);
  });
}

TEST(Split, OutlivesItsParentAndCanBeSplitAgain) {
  const ncclUniqueId id = newId();
  onThreads(4, [&](int rank) {
    ncclComm_t comm = nullptr, half = nullptr, single = nullptr;
    ASSERT_EQ(ncclCommInitRank(&comm, 4, id, rank), ncclSuccess) << lastError();
    ASSERT_EQ(ncclCommSplit(comm, rank / 2, rank, &half, nullptr), ncclSuccess) << lastError();
    ASSERT_EQ(ncclCommDestroy(comm), ncclSuccess);
    expectWorks(half, 2, rank % 2);
    ASSERT_EQ(ncclCommSplit(half, rank % 2, 0, &single, nullptr), ncclSuccess) << lastError();
    ASSERT_EQ(ncclCommDestroy(half), ncclSuccess);
    expectWorks(single, 1, 0);
    EXPECT_EQ(ncclCommDestroy(single), ncclSuccess);
  });
}

TEST(Split, RunsInGroupsOfOneThread) {
  constexpr int kRanks = 3;
  std::vector<ncclComm_t> comms(kRanks), all(kRanks), alone(kRanks);
  ASSERT_EQ(ncclCommInitAll(comms.data(), kRanks, nullptr), ncclSuccess);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (size_t rank = 0; rank < kRanks; ++rank) {
    ASSERT_EQ(ncclCommSplit(comms[rank], 0, 0, &all[rank], nullptr), ncclSuccess);
    ASSERT_EQ(ncclCommSplit(comms[rank], static_cast<int>(rank), 0, &alone[rank], nullptr), ncclSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << lastError();
  onThreads(kRanks, [&](int rank) {
    expectWorks(all[static_cast<size_t>(rank)], kRanks, rank);
    expectWorks(alone[static_cast<size_t>(rank)], 1, 0);
  });
  for (const auto& group : {comms, all, alone})
    for (ncclComm_t comm : group) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(Split, TellsAllRanksOfAWrongColour) {
  const ncclUniqueId id = newId();
  onProcesses(3, [&](int rank) {
    const Comm comm(id, 3, rank);
    ncclComm_t part = nullptr;
    EXPECT_EQ(ncclCommSplit(comm, rank == 1 ? -2 : 0, 0, &part, nullptr), ncclInvalidArgument);
    EXPECT_NE(lastError().find("color of rank 1 is -2"), std::string::npos) << lastError();
    EXPECT_EQ(part, nullptr);
    // The parent goes on.
    expectMovement(Movement::AllReduce, comm, 3, rank, -1, 10, false);
    return 0;
  });
}

TEST(Split, RefusesWrongArguments) {
  ncclComm_t comm = nullptr, part = nullptr;
  ASSERT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess);
  EXPECT_EQ(ncclCommSplit(comm, 0, 0, nullptr, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommSplit(nullptr, 0, 0, &part, nullptr), ncclInvalidArgument);
  ASSERT_EQ(ncclCommFinalize(comm), ncclSuccess);
  EXPECT_EQ(ncclCommSplit(comm, 0, 0, &part, nullptr), ncclInvalidUsage);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(Scalable, RanksMeetAtTheFirstId) {
  ncclUniqueId ids[2] = {newId(), newId()};
  onThreads(3, [&](int rank) {
    ncclComm_t comm = nullptr;
    ASSERT_EQ(ncclCommInitRankScalable(&comm, 3, rank, 2, ids, nullptr), ncclSuccess) << lastError();
    expectWorks(comm, 3, rank);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankScalable(&comm, 1, 0, 2, ids, nullptr), ncclInvalidArgument);
  EXPECT_NE(lastError().find("nId is 2; it must be in 1..1"), std::string::npos) << lastError();
}

TEST(Registration, KeepsBook) {
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess);
  char buffer[64];
  void *first = nullptr, *second = nullptr;
  EXPECT_EQ(ncclCommRegister(comm, buffer, sizeof buffer, &first), ncclSuccess);
  EXPECT_EQ(ncclCommRegister(comm, buffer, sizeof buffer, &second), ncclSuccess);
  EXPECT_NE(first, nullptr);
  EXPECT_NE(first, second);
  EXPECT_EQ(ncclCommDeregister(comm, first), ncclSuccess);
  EXPECT_EQ(ncclCommDeregister(comm, first), ncclInvalidArgument);
  EXPECT_EQ(ncclCommRegister(comm, nullptr, 1, &first), ncclInvalidArgument);
  EXPECT_EQ(ncclCommRegister(comm, buffer, 0, &first), ncclInvalidArgument);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

}  // namespace
}  // namespace topoccl::test
