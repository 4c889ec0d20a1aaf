// Tens of thousands of calls one after the other, drawn at random but alike on all ranks: collectives of any
// size, root and placement, groups of several, sends and receives between and beside them. Every result is
// checked.
#include <cstdlib>
#include <deque>

#include "communicator/movements.h"
#include "communicator/ranks.h"

namespace topoccl::test {
namespace {

uint32_t callCount() {
  if (std::getenv("TOPOCCL_TEST_FULL") != nullptr) return 50'000;
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

class Rank {
 public:
  Rank(ncclComm_t comm, int ranks, int rank, uint32_t seed)
      : comm_(comm), ranks_(ranks), rank_(rank), draws_(seed) {}

  void call() {
    ++number_;
    const uint32_t kind = draws_.below(10);
    if (kind < 6) return one();
    group(kind >= 8);
  }

 private:
  MovementCall& draw(std::deque<MovementCall>& calls) {
    const Movement movement = kMovements[draws_.below(std::size(kMovements))];
    const auto root = static_cast<int>(draws_.below(static_cast<uint32_t>(ranks_)));
    const size_t count = draws_.count();
    const bool inPlace = draws_.below(2) == 0;
    return calls.emplace_back(movement, comm_, ranks_, rank_, hasRoot(movement) ? root : -1, count, inPlace,
                              number_ * 8 + static_cast<uint32_t>(calls.size()), draws_.below(4));
  }

  void one() {
    std::deque<MovementCall> calls;
    ASSERT_EQ(draw(calls).run(), ncclSuccess) << ncclGetLastError(nullptr);
    ASSERT_EQ(calls.front().flaw(), "");
  }

  // A few collectives and a ring of sends, or sends to everyone.
  void group(bool everyone) {
    std::deque<MovementCall> calls;
    std::deque<std::vector<uint32_t>> out, in;
    std::vector<int> froms;
    const uint32_t collectives = draws_.below(4);
    const size_t count = draws_.count();
    const int firstHop = everyone ? 0 : 1, lastHop = everyone ? ranks_ - 1 : 1;
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (uint32_t i = 0; i < collectives; ++i)
      ASSERT_EQ(draw(calls).run(), ncclSuccess) << ncclGetLastError(nullptr);
    for (int hop = firstHop; hop <= lastHop; ++hop) {
      const int to = (rank_ + hop) % ranks_, from = (rank_ + ranks_ - hop) % ranks_;
      std::vector<uint32_t>& mine = out.emplace_back(count);
      for (size_t i = 0; i < count; ++i) mine[i] = sent(rank_ * 64 + to, i, number_);
      in.emplace_back(count);
      froms.push_back(from);
      ASSERT_EQ(ncclSend(mine.data(), count, ncclUint32, to, comm_, nullptr), ncclSuccess);
      ASSERT_EQ(ncclRecv(in.back().data(), count, ncclUint32, from, comm_, nullptr), ncclSuccess);
    }
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
    for (const MovementCall& call : calls) ASSERT_EQ(call.flaw(), "");
    for (size_t message = 0; message < in.size(); ++message)
      for (size_t i = 0; i < count; ++i)
        ASSERT_EQ(in[message][i], sent(froms[message] * 64 + rank_, i, number_));
  }

  ncclComm_t comm_;
  int ranks_, rank_;
  Draws draws_;
  uint32_t number_ = 0;
};

void soak(const ncclUniqueId& id, int ranks, int rank) {
  const Comm comm(id, ranks, rank);
  Rank it(comm, ranks, rank, static_cast<uint32_t>(ranks));
  for (uint32_t call = 0; call < callCount(); ++call) {
    it.call();
    if (testing::Test::HasFatalFailure()) return;
  }
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
