// Sends and receives: pairs, rings, many peers, itself, alone and among collectives; and what goes wrong.
#include <atomic>
#include <deque>

#include "communicator/movements.h"
#include "communicator/ranks.h"
#include "support/shared_value.h"

namespace topoccl::test {
namespace {

using Words = std::vector<uint32_t>;

Words wordsOf(int from, int to, size_t count, uint32_t seed = 0) {
  Words words(count);
  for (size_t i = 0; i < count; ++i) words[i] = sent(from * 64 + to, i, seed);
  return words;
}

void send(ncclComm_t comm, const Words& words, int peer) {
  ASSERT_EQ(ncclSend(words.data(), words.size(), ncclUint32, peer, comm, nullptr), ncclSuccess)
      << ncclGetLastError(nullptr);
}
void receive(ncclComm_t comm, Words& words, int peer) {
  ASSERT_EQ(ncclRecv(words.data(), words.size(), ncclUint32, peer, comm, nullptr), ncclSuccess)
      << ncclGetLastError(nullptr);
}
void endGroup() {
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
}

std::string lastError() {
  return ncclGetLastError(nullptr);
}

const std::vector<size_t> kCounts = {0, 1, 3, 1009, 40009, 600011};

TEST(PointToPoint, MovesDataFromOneRankToAnother) {
  const ncclUniqueId id = newId();
  onThreads(2, [&](int rank) {
    const Comm comm(id, 2, rank);
    for (const size_t count : kCounts) {
      Words got(count, 1);
      if (rank == 0) send(comm, wordsOf(0, 1, count), 1);
      if (rank == 1) receive(comm, got, 0);
      EXPECT_EQ(got, rank == 1 ? wordsOf(0, 1, count) : Words(count, 1));
    }
  });
}

TEST(PointToPoint, MovesDataBetweenProcesses) {
  const ncclUniqueId id = newId();
  onProcesses(3, [&](int rank) {
    const Comm comm(id, 3, rank);
    const int next = (rank + 1) % 3, previous = (rank + 2) % 3;
    for (const size_t count : kCounts) {
      Words got(count, 1);
      const Words mine = wordsOf(rank, next, count);
      EXPECT_EQ(ncclGroupStart(), ncclSuccess);
      send(comm, mine, next);
      receive(comm, got, previous);
      endGroup();
      EXPECT_EQ(got, wordsOf(previous, rank, count));
    }
    return 0;
  });
}

// Everyone to everyone, itself too, with several messages a pair: 2 * 2 * ranks lines in one group.
TEST(PointToPoint, ServesManyPeersInOneGroup) {
  for (const int ranks : {1, 2, 5, 13}) {
    const ncclUniqueId id = newId();
    onThreads(ranks, [&](int rank) {
      const Comm comm(id, ranks, rank);
      for (const size_t count : {size_t{0}, size_t{3}, size_t{30011}}) {
        std::deque<Words> outgoing, incoming;
        ASSERT_EQ(ncclGroupStart(), ncclSuccess);
        for (uint32_t message = 0; message < 2; ++message)
          for (int peer = 0; peer < ranks; ++peer) {
            send(comm, outgoing.emplace_back(wordsOf(rank, peer, count + message, message)), peer);
            receive(comm, incoming.emplace_back(Words(count + message)), peer);
          }
        endGroup();
        size_t at = 0;
        for (uint32_t message = 0; message < 2; ++message)
          for (int peer = 0; peer < ranks; ++peer)
            EXPECT_TRUE(incoming[at++] == wordsOf(peer, rank, count + message, message))
                << ranks << " ranks: " << peer << " -> " << rank << " message " << message << " count "
                << count;
      }
    });
  }
}

TEST(PointToPoint, RunsBesideCollectivesOfTheSameGroup) {
  constexpr int kRanks = 3;
  const ncclUniqueId id = newId();
  onThreads(kRanks, [&](int rank) {
    const Comm comm(id, kRanks, rank);
    const int next = (rank + 1) % kRanks, previous = (rank + 2) % kRanks;
    for (const size_t count : {size_t{5}, size_t{200'003}}) {
      MovementCall first(Movement::AllReduce, comm, kRanks, rank, -1, count, false);
      MovementCall second(Movement::Broadcast, comm, kRanks, rank, 2, count, false);
      const Words mine = wordsOf(rank, next, count);
      Words got(count);
      ASSERT_EQ(ncclGroupStart(), ncclSuccess);
      // Another order on every rank: only that of the collectives among themselves counts.
      if (rank == 0) receive(comm, got, previous);
      ASSERT_EQ(first.run(), ncclSuccess) << lastError();
      if (rank == 1) send(comm, mine, next);
      ASSERT_EQ(second.run(), ncclSuccess) << lastError();
      if (rank != 1) send(comm, mine, next);
      if (rank != 0) receive(comm, got, previous);
      endGroup();
      EXPECT_EQ(first.flaw() + second.flaw(), "");
      EXPECT_EQ(got, wordsOf(previous, rank, count));
    }
  });
}

TEST(PointToPoint, OneThreadDrivesSeveralRanks) {
  std::vector<ncclComm_t> comms(2);
  ASSERT_EQ(ncclCommInitAll(comms.data(), 2, nullptr), ncclSuccess);
  for (const size_t count : kCounts) {
    Words got(count);
    const Words words = wordsOf(0, 1, count);
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    receive(comms[1], got, 0);
    send(comms[0], words, 1);
    endGroup();
    EXPECT_EQ(got, words);
  }
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(PointToPoint, TypesOfTheSameSizeMatch) {
  const ncclUniqueId id = newId();
  onThreads(2, [&](int rank) {
    const Comm comm(id, 2, rank);
    const Words words = wordsOf(0, 1, 1000);
    Words got(1000);
    if (rank == 0) {
      EXPECT_EQ(ncclSend(words.data(), 4000, ncclUint8, 1, comm, nullptr), ncclSuccess) << lastError();
    } else {
      EXPECT_EQ(ncclRecv(got.data(), 500, ncclFloat64, 0, comm, nullptr), ncclSuccess) << lastError();
      EXPECT_EQ(got, words);
    }
  });
}

// (Processes: the last error is that of a process.)
TEST(PointToPoint, AnotherCountThanThePeersIsToldToBothWithBothCalls) {
  const ncclUniqueId id = newId();
  onProcesses(2, [&](int rank) {
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, 2, id, rank), ncclSuccess);
    Words words(400'000);
    const ncclResult_t result = rank == 0 ? ncclSend(words.data(), words.size(), ncclUint32, 1, comm, nullptr)
                                          : ncclRecv(words.data(), 1000, ncclUint32, 0, comm, nullptr);
    EXPECT_EQ(result, ncclInvalidUsage);
    EXPECT_NE(lastError().find("rank 1 called recv #1 uint32 x 1000 from rank 0, 4000 bytes; "
                               "rank 0 called send #1, 1600000 bytes"),
              std::string::npos)
        << lastError();
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    return 0;
  });
}

// However few bytes there are: that a slot has room for them is no partner.
TEST(PointToPoint, ToItselfWithoutAPartnerIsAnError) {
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess);
  for (const size_t count : {size_t{0}, size_t{1}, size_t{100'000}}) {
    Words words(count), got(count);
    const auto send = [&] { return ncclSend(words.data(), count, ncclUint32, 0, comm, nullptr); };
    const auto receive = [&] { return ncclRecv(got.data(), count, ncclUint32, 0, comm, nullptr); };
    const auto expectUnpaired = [&](ncclResult_t result, const char* text) {
      EXPECT_EQ(result, ncclInvalidUsage) << count;
      EXPECT_NE(lastError().find(text), std::string::npos) << lastError();
    };
    expectUnpaired(receive(), "rank 0 has 0 sends to itself and 1 receive from itself");
    expectUnpaired(send(), "rank 0 has 1 send to itself and 0 receives from itself");
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(send(), ncclSuccess);
    EXPECT_EQ(receive(), ncclSuccess);
    expectUnpaired(ncclGroupEnd(), "rank 0 has 3 sends to itself and 1 receive from itself");
    // Nothing was begun, so nothing is lost.
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(receive(), ncclSuccess);
    EXPECT_EQ(send(), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << lastError();
    EXPECT_EQ(got, words);
  }
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

// Not as a missing partner.
TEST(PointToPoint, AnotherCountToItselfIsAnError) {
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess);
  Words words(1000), got(1000);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclSend(words.data(), 10, ncclUint32, 0, comm, nullptr), ncclSuccess);
  EXPECT_EQ(ncclRecv(got.data(), 20, ncclUint32, 0, comm, nullptr), ncclSuccess);
  EXPECT_NE(ncclGroupEnd(), ncclSuccess);
  EXPECT_NE(lastError().find("recv #1 uint32 x 20 from rank 0, 80 bytes; rank 0 called send #1, 40 bytes"),
            std::string::npos)
      << lastError();
  EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
}

TEST(PointToPoint, APeerThatLeavesIsReported) {
  const ncclUniqueId id = newId();
  onThreads(2, [&](int rank) {
    ncclComm_t comm = nullptr;
    ASSERT_EQ(ncclCommInitRank(&comm, 2, id, rank), ncclSuccess);
    Words words(1000, 7);
    if (rank == 0) {
      // What was sent before it left arrives.
      EXPECT_EQ(ncclSend(words.data(), 5, ncclUint32, 1, comm, nullptr), ncclSuccess) << lastError();
      EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
      return;
    }
    EXPECT_EQ(ncclRecv(words.data(), 5, ncclUint32, 0, comm, nullptr), ncclSuccess) << lastError();
    EXPECT_EQ(ncclRecv(words.data(), 5, ncclUint32, 0, comm, nullptr), ncclRemoteError);
    EXPECT_NE(lastError().find("rank 0 destroyed its communicator before recv #2"), std::string::npos)
        << lastError();
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  });
}

TEST(PointToPoint, RefusesWrongArguments) {
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess);
  uint32_t word = 5;
  EXPECT_EQ(ncclSend(&word, 1, ncclUint32, 1, comm, nullptr), ncclInvalidArgument);
  EXPECT_NE(lastError().find("peer is 1; it must be in 0..0"), std::string::npos) << lastError();
  EXPECT_EQ(ncclRecv(&word, 1, ncclUint32, -1, comm, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclSend(nullptr, 1, ncclUint32, 0, comm, nullptr), ncclInvalidArgument);
  EXPECT_NE(lastError().find("sendbuff is NULL"), std::string::npos) << lastError();
  EXPECT_EQ(ncclRecv(nullptr, 1, ncclUint32, 0, comm, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclRecv(&word, 1, ncclNumTypes, 0, comm, nullptr), ncclInvalidArgument);
  EXPECT_EQ(word, 5U);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

}  // namespace
}  // namespace topoccl::test
