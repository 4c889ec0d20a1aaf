// What topoccl.h has beyond NCCL's calls: all-to-all with a size per pair, and a barrier.
#include <atomic>

#include "communicator/movements.h"
#include "communicator/ranks.h"
#include "support/shared_value.h"
#include "topoccl.h"

namespace topoccl::test {
namespace {

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

TEST(AllToAllV, RefusesWrongArguments) {
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess);
  const size_t one = 1, zero = 0;
  uint32_t word = 5, other = 6;
  EXPECT_EQ(topocclAllToAllV(&word, nullptr, &zero, &other, &one, &zero, ncclUint32, comm, nullptr),
            ncclInvalidArgument);
  EXPECT_NE(lastError().find("sendcounts is NULL"), std::string::npos) << lastError();
  EXPECT_EQ(topocclAllToAllV(nullptr, &one, &zero, &other, &one, &zero, ncclUint32, comm, nullptr),
            ncclInvalidArgument);
  EXPECT_NE(lastError().find("sendbuff is NULL although count is 1"), std::string::npos) << lastError();
  EXPECT_EQ(other, 6U);
  EXPECT_EQ(topocclAllToAllV(&word, &one, &zero, &other, &one, &zero, ncclUint32, comm, nullptr), ncclSuccess)
      << lastError();
  EXPECT_EQ(other, 5U);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
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
