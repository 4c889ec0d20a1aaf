// Tens of thousands of calls one after the other, drawn at random but alike on all ranks: collectives of any
// size, root and placement, groups of several, sends and receives between and beside them, on streams and on
// none. Every result is checked.
#include <cstdlib>
#include <deque>

#include "communicator/movements.h"
#include "communicator/ranks.h"
#include "support/sanitized.h"
#include "topoccl.h"

namespace topoccl::test {
namespace {

uint32_t callCount() {
  if (std::getenv("TOPOCCL_TEST_FULL") != nullptr) return kSanitized ? 5'000 : 50'000;
  return std::getenv("TOPOCCL_TEST_REDUCED") != nullptr ? 300 : 2'000;
}

// The same numbers on every rank.
class Draws {
 public:
  explicit Draws(uint32_t seed) : state_(seed * 2654435761u + 1) {}

  uint32_t below(uint32_t limit) {
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<uint32_t>((uint64_t{state_} * limit) >> 32);
  }

  // Mostly small, sometimes of many pieces, sometimes nothing.
  size_t count() {
    switch (below(10)) {
      case 0:
        return 0;
      case 1:
        return below(60'000);
      case 2:
        return below(5'000);
      default:
        return below(100);
    }
  }

 private:
  uint32_t state_;
};

// What was issued together, until it is checked.
struct Batch {
  uint32_t number;
  std::deque<MovementCall> calls{};
  std::deque<std::vector<uint32_t>> out{}, in{};
  std::vector<int> froms{};  // whom `in` is from

  void expectRight(int rank) const {
    for (const MovementCall& call : calls) ASSERT_EQ(call.flaw(), "");
    for (size_t message = 0; message < in.size(); ++message)
      for (size_t i = 0; i < in[message].size(); ++i)
        ASSERT_EQ(in[message][i], sent(froms[message] * 64 + rank, i, number));
  }
};

class Rank {
 public:
  // Two communicators of the same ranks.
  Rank(ncclComm_t first, ncclComm_t second, int ranks, int rank, uint32_t seed)
      : comms_{first, second},
        ranks_(ranks),
        rank_(rank),
        draws_(seed),
        placements_(seed * 64 + static_cast<uint32_t>(rank)) {
    for (cudaStream_t& stream : streams_) EXPECT_EQ(topocclStreamCreate(&stream), ncclSuccess);
  }
  ~Rank() {
    for (cudaStream_t stream : streams_) EXPECT_EQ(topocclStreamDestroy(stream), ncclSuccess);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  void call() {
    batches_.push_back({++number_});
    const uint32_t kind = draws_.below(10);
    drawStream();
    kind < 6 ? one() : group(kind >= 8);
    if (batches_.size() > kUnchecked || placements_.below(4) == 0) check();
  }

  // What has been issued so far.
  void check() {
    for (cudaStream_t stream : streams_)
      ASSERT_EQ(topocclStreamSynchronize(stream), ncclSuccess) << ncclGetLastError(nullptr);
    for (const Batch& batch : batches_) batch.expectRight(rank_);
    batches_.clear();
  }

 private:
  static constexpr size_t kUnchecked = 8;

  // Each rank places its calls as it likes: on a stream, or on none.
  void drawStream() {
    const uint32_t place = placements_.below(4);
    stream_ = place < std::size(streams_) ? streams_[place] : nullptr;
  }

  ncclComm_t drawComm() { return comms_[draws_.below(2)]; }

  void draw() {
    std::deque<MovementCall>& calls = batches_.back().calls;
    const Movement movement = kMovements[draws_.below(std::size(kMovements))];
    const auto root = static_cast<int>(draws_.below(static_cast<uint32_t>(ranks_)));
    const size_t count = draws_.count();
    const bool inPlace = draws_.below(2) == 0;
    calls.emplace_back(movement, drawComm(), ranks_, rank_, hasRoot(movement) ? root : -1, count, inPlace,
                       number_ * 8 + static_cast<uint32_t>(calls.size()), draws_.below(4));
    ASSERT_EQ(calls.back().run(stream_), ncclSuccess) << ncclGetLastError(nullptr);
  }

  void one() { draw(); }

  // A few collectives and a ring of sends, or sends to everyone.
  void group(bool everyone) {
    Batch& batch = batches_.back();
    const uint32_t collectives = draws_.below(4);
    const size_t count = draws_.count();
    const int firstHop = everyone ? 0 : 1, lastHop = everyone ? ranks_ - 1 : 1;
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (uint32_t i = 0; i < collectives; ++i) draw();
    for (int hop = firstHop; hop <= lastHop; ++hop) {
      const int to = (rank_ + hop) % ranks_, from = (rank_ + ranks_ - hop) % ranks_;
      std::vector<uint32_t>& mine = batch.out.emplace_back(count);
      for (size_t i = 0; i < count; ++i) mine[i] = sent(rank_ * 64 + to, i, number_);
      batch.in.emplace_back(count);
      batch.froms.push_back(from);
      drawStream();
      ncclComm_t comm = drawComm();
      ASSERT_EQ(ncclSend(mine.data(), count, ncclUint32, to, comm, stream_), ncclSuccess);
      ASSERT_EQ(ncclRecv(batch.in.back().data(), count, ncclUint32, from, comm, stream_), ncclSuccess);
    }
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
  }

  ncclComm_t comms_[2];
  int ranks_, rank_;
  Draws draws_;       // alike on all ranks
  Draws placements_;  // not
  std::deque<Batch> batches_;
  cudaStream_t streams_[2] = {};
  cudaStream_t stream_ = nullptr;
  uint32_t number_ = 0;
};

void soak(const ncclUniqueId& id, int ranks, int rank) {
  const Comm first(id, ranks, rank);
  ncclComm_t second = nullptr;
  ASSERT_EQ(ncclCommSplit(first, 0, 0, &second, nullptr), ncclSuccess) << ncclGetLastError(nullptr);
  const struct Destroy {
    ncclComm_t comm;
    ~Destroy() { EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess) << ncclGetLastError(nullptr); }
  } destroy{second};
  Rank it(first, second, ranks, rank, static_cast<uint32_t>(ranks));
  for (uint32_t call = 0; call < callCount(); ++call) {
    it.call();
    if (testing::Test::HasFatalFailure()) return;
  }
  it.check();
}

class Soak : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Soak, testing::Values(2, 3, 5, 8));

TEST_P(Soak, RunsMixedCallsOnThreads) {
  const ncclUniqueId id = newId();
  onThreads(GetParam(), [&](int rank) { soak(id, GetParam(), rank); });
}

TEST_P(Soak, RunsMixedCallsOnProcesses) {
  const ncclUniqueId id = newId();
  onProcesses(GetParam(), [&](int rank) {
    soak(id, GetParam(), rank);
    return 0;
  });
}

}  // namespace
}  // namespace topoccl::test
