// What topoccl.h has beyond NCCL's calls: all-to-all with a size per pair, and a barrier.
#include <atomic>

#include "communicator/movements.h"
#include "communicator/ranks.h"
#include "support/shared_value.h"
#include "topoccl.h"

namespace topoccl::test {
namespace {

using Words = std::vector<uint32_t>;

std::string lastError() {
  return ncclGetLastError(nullptr);
}

size_t countOf(int from, int to, size_t scale) {
  return static_cast<size_t>((from * 3 + to * 5) % 4) * scale;  // some pairs exchange nothing
}

// One rank's arrays, with gaps between the parts.
struct Parts {
  std::vector<size_t> counts, displacements;
  std::vector<uint32_t> words;

  Parts(int ranks, size_t scale, const std::function<size_t(int)>& count) {
    size_t at = 1;
    for (int peer = 0; peer < ranks; ++peer) {
      counts.push_back(count(peer));
      displacements.push_back(at);
      at += count(peer) + 1;
    }
    words.assign(at + scale, 0xa5a5a5a5);
  }
};

TEST(AllToAllV, MovesEveryPairsPart) {
  for (const int ranks : {1, 2, 3, 5})
    for (const size_t scale : {size_t{0}, size_t{1}, size_t{7001}}) {
      const ncclUniqueId id = newId();
      onThreads(ranks, [&](int rank) {
        const Comm comm(id, ranks, rank);
        Parts out(ranks, scale, [&](int peer) { return countOf(rank, peer, scale); });
        Parts in(ranks, scale, [&](int peer) { return countOf(peer, rank, scale); });
        std::vector<uint32_t> expected = in.words;
        for (int peer = 0; peer < ranks; ++peer) {
          const auto p = static_cast<size_t>(peer);
          for (size_t i = 0; i < out.counts[p]; ++i)
            out.words[out.displacements[p] + i] = sent(rank * 64 + peer, i, 9);
          for (size_t i = 0; i < in.counts[p]; ++i)
            expected[in.displacements[p] + i] = sent(peer * 64 + rank, i, 9);
        }
        ASSERT_EQ(
            topocclAllToAllV(out.words.data(), out.counts.data(), out.displacements.data(), in.words.data(),
                             in.counts.data(), in.displacements.data(), ncclUint32, comm, nullptr),
            ncclSuccess)
            << lastError();
        EXPECT_EQ(in.words, expected);
      });
    }
}

// A call of the only rank of a communicator, with one argument spoilt.
class AllToAllVOfOne : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(ncclCommInitAll(&comm_, 1, nullptr), ncclSuccess); }
  void TearDown() override { EXPECT_EQ(ncclCommDestroy(comm_), ncclSuccess); }

  ncclResult_t call() {
    return topocclAllToAllV(send_, sendCounts_, sendDisplacements_, receive_, receiveCounts_,
                            receiveDisplacements_, type_, comm_, stream_);
  }

  // Alone, and in a group with a good call, which then does not run either.
  void expectRefusal(const std::string& text) {
    EXPECT_EQ(call(), ncclInvalidArgument) << text;
    EXPECT_EQ(lastError().rfind("topocclAllToAllV: " + text, 0), 0U) << lastError();
    uint32_t in = 3, out = 0;
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(&in, &out, 1, ncclUint32, ncclSum, comm_, nullptr), ncclSuccess);
    EXPECT_EQ(call(), ncclInvalidArgument) << text;
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
    EXPECT_EQ(lastError().rfind("ncclGroupEnd: topocclAllToAllV: " + text, 0), 0U) << lastError();
    EXPECT_EQ(out, 0U);
    EXPECT_EQ(words_, (std::vector<uint32_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  }

  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  ncclDataType_t type_ = ncclUint32;
  std::vector<uint32_t> words_{1, 2, 3, 4, 5, 6, 7, 8};
  size_t counts_[2] = {2, 2}, displacements_[2] = {0, 4};  // sent, received
  void* send_ = words_.data();
  void* receive_ = words_.data();
  size_t *sendCounts_ = &counts_[0], *receiveCounts_ = &counts_[1];
  size_t *sendDisplacements_ = &displacements_[0], *receiveDisplacements_ = &displacements_[1];
};

TEST_F(AllToAllVOfOne, MovesWithinABuffer) {
  EXPECT_EQ(call(), ncclSuccess) << lastError();
  EXPECT_EQ(words_, (std::vector<uint32_t>{1, 2, 3, 4, 1, 2, 7, 8}));
}

TEST_F(AllToAllVOfOne, NullArraysAreRefused) {
  sendCounts_ = nullptr;
  expectRefusal("sendcounts is NULL");
  std::swap(sendCounts_, sendDisplacements_);
  expectRefusal("sdispls is NULL");
}

TEST_F(AllToAllVOfOne, NullBuffersAreRefusedUnlessNothingMoves) {
  receive_ = nullptr;
  expectRefusal("recvbuff is NULL although recvcounts[0] is 2; only counts of 0 allow NULL");
  send_ = nullptr;
  expectRefusal("sendbuff is NULL although sendcounts[0] is 2; only counts of 0 allow NULL");
  counts_[0] = counts_[1] = 0;
  displacements_[0] = SIZE_MAX;  // which then means nothing
  EXPECT_EQ(call(), ncclSuccess) << lastError();
}

TEST_F(AllToAllVOfOne, PartsBeyondMemoryAreRefused) {
  for (const size_t count : {SIZE_MAX, SIZE_MAX / 4 + 2, SIZE_MAX / 4, (size_t{1} << 54) + 1}) {
    counts_[0] = count;
    expectRefusal("sendcounts[0] is " + std::to_string(count) +
                  " and sdispls[0] is 0; with 4 bytes an element both "
                  "together must be at most ");
  }
  counts_[0] = 2;
  displacements_[1] = SIZE_MAX - 1;
  expectRefusal("recvcounts[0] is 2 and rdispls[0] is " + std::to_string(SIZE_MAX - 1));
}

TEST_F(AllToAllVOfOne, WhatGoesToItselfMustBeWhatComesFromItself) {
  counts_[1] = 1;
  expectRefusal("sendcounts[0] is 2 and recvcounts[0] is 1; what a rank sends to itself");
}

TEST_F(AllToAllVOfOne, OverlapIsRefused) {
  for (const size_t displacement : {size_t{0}, size_t{1}}) {
    displacements_[1] = displacement;
    expectRefusal("sendbuff's part for rank 0 and recvbuff's part from rank 0 overlap");
  }
  displacements_[1] = 2;
  EXPECT_EQ(call(), ncclSuccess) << lastError();
}

TEST_F(AllToAllVOfOne, WhatAGroupRefusesIsRefused) {
  stream_ = reinterpret_cast<cudaStream_t>(words_.data());
  expectRefusal("stream is 0x");
}

TEST(AllToAllV, ReceivedPartsMayNotOverlapEachOther) {
  const ncclUniqueId id = newId();
  onThreads(2, [&](int rank) {
    const Comm comm(id, 2, rank);
    const size_t counts[] = {2, 2}, apart[] = {0, 2}, together[] = {0, 1}, same[] = {0, 0};
    const Words out{1, 2, 3, 4};
    Words in(4, 9);
    EXPECT_EQ(
        topocclAllToAllV(out.data(), counts, apart, in.data(), counts, together, ncclUint32, comm, nullptr),
        ncclInvalidArgument);
    EXPECT_NE(lastError().find("recvbuff's part from rank 0 and recvbuff's part from rank 1 overlap"),
              std::string::npos)
        << lastError();
    EXPECT_EQ(in, Words(4, 9));
    // What is sent may: the same to everyone.
    EXPECT_EQ(topocclAllToAllV(out.data(), counts, same, in.data(), counts, apart, ncclUint32, comm, nullptr),
              ncclSuccess)
        << lastError();
    EXPECT_EQ(in, (Words{1, 2, 1, 2}));
  });
}

TEST(Barrier, HoldsAllUntilTheLastHasCome) {
  constexpr int kRanks = 4, kRounds = 50;
  const ncclUniqueId id = newId();
  SharedValue<std::atomic<int>> come;
  onProcesses(kRanks, [&](int rank) {
    const Comm comm(id, kRanks, rank);
    for (int round = 0; round < kRounds; ++round) {
      ++*come;
      EXPECT_EQ(topocclBarrier(comm, nullptr), ncclSuccess) << lastError();
      EXPECT_GE(*come, (round + 1) * kRanks);
    }
    return 0;
  });
}

}  // namespace
}  // namespace topoccl::test
