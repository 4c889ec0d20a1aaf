// Every collective as users call it: threads and processes, roots, in place, odd sizes and addresses, every
// algorithm that it has.
#include <deque>

#include "communicator/movements.h"
#include "communicator/ranks.h"
#include "topoccl.h"

namespace topoccl::test {
namespace {

bool isReduced() {
  return std::getenv("TOPOCCL_TEST_REDUCED") != nullptr;
}

std::vector<size_t> counts() {
  return isReduced() ? std::vector<size_t>{0, 3, 1009, 40009} : std::vector<size_t>{0, 1, 3, 17, 1009, 40009};
}

std::vector<int> rootsOf(Movement movement, int ranks) {
  if (!hasRoot(movement)) return {-1};
  if (ranks < 3) return {0, ranks - 1};
  return {0, ranks / 2, ranks - 1};
}

void expectAllShapes(Movement movement, ncclComm_t comm, int ranks, int rank) {
  uint32_t seed = 0;
  for (const size_t count : counts())
    for (const int root : rootsOf(movement, ranks))
      for (const bool inPlace : {false, true}) {
        ++seed;
        expectMovement(movement, comm, ranks, rank, root, count, inPlace, seed, seed % 3);
      }
}

class Collectives : public testing::TestWithParam<Movement> {};
INSTANTIATE_TEST_SUITE_P(All, Collectives, testing::ValuesIn(kMovements),
                         [](const auto& instance) { return std::string(nameOf(instance.param)); });

TEST_P(Collectives, AreExactOnThreads) {
  for (const int ranks : isReduced() ? std::vector{1, 2, 3, 5, 13} : std::vector{1, 2, 3, 4, 5, 7, 8, 13}) {
    const ncclUniqueId id = newId();
    onThreads(ranks, [&](int rank) {
      const Comm comm(id, ranks, rank);
      expectAllShapes(GetParam(), comm, ranks, rank);
    });
  }
}

TEST_P(Collectives, AreExactOnProcesses) {
  for (const int ranks : {2, 3, 5, 8}) {
    const ncclUniqueId id = newId();
    onProcesses(ranks, [&](int rank) {
      const Comm comm(id, ranks, rank);
      expectAllShapes(GetParam(), comm, ranks, rank);
      return 0;
    });
  }
}

TEST_P(Collectives, AreExactOnOneThreadInGroups) {
  constexpr int kRanks = 3;
  std::vector<ncclComm_t> comms(kRanks);
  ASSERT_EQ(ncclCommInitAll(comms.data(), kRanks, nullptr), ncclSuccess) << ncclGetLastError(nullptr);
  for (const size_t count : counts()) {
    std::deque<MovementCall> calls;
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int rank = 0; rank < kRanks; ++rank) {
      calls.emplace_back(GetParam(), comms[static_cast<size_t>(rank)], kRanks, rank, 1, count, false);
      ASSERT_EQ(calls.back().run(), ncclSuccess) << ncclGetLastError(nullptr);
    }
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
    for (const MovementCall& call : calls) EXPECT_EQ(call.flaw(), "");
  }
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST_P(Collectives, AreExactWithEveryAlgorithmProtocolAndSeveralChannels) {
  for (const std::string algorithm : {"ring", "tree", "mesh_oneshot", "mesh_twoshot", "halving_doubling"})
    for (const std::string protocol : {"LL", "Simple"})
      for (const int ranks : isReduced() ? std::vector{2, 5} : std::vector{2, 5, 8}) {
        const Environment environment{{"NCCL_ALGO", algorithm},
                                      {"NCCL_PROTO", protocol},
                                      {"TOPOCCL_CHANNELS", ranks == 5 ? "3" : "0"},
                                      {"TOPOCCL_SLOT_BYTES", ranks == 8 ? "4096" : "0"}};
        const ncclUniqueId id = newId();
        onThreads(ranks, [&](int rank) {
          const Comm comm(id, ranks, rank);
          expectAllShapes(GetParam(), comm, ranks, rank);
        });
      }
}

// Of settings that say how data moves and how long is waited.
TEST(Settings, AtBothEndsOfTheirRangesWork) {
  const std::pair<const char*, std::vector<const char*>> settings[] = {
      {"NCCL_BUFFSIZE", {"1", "1099511627776"}},
      {"TOPOCCL_SLOT_BYTES", {"0", "1", "1048576"}},
      {"TOPOCCL_SLOTS", {"0", "1", "1024"}},
      {"TOPOCCL_CHANNELS", {"0", "1", "64"}},
      {"TOPOCCL_SPIN", {"-1", "0", "1099511627776"}},
      {"TOPOCCL_INIT_TIMEOUT", {"604800"}},
      {"TOPOCCL_REFERENCES", {"0", "1"}},
      {"TOPOCCL_COLLECTIVE_TIMEOUT", {"0", "604800"}},
      {"TOPOCCL_REPORT_AFTER", {"0", "604800"}}};
  for (const auto& [name, values] : settings)
    for (const char* value : values) {
      SCOPED_TRACE(std::string(name) + "=" + value);
      const Environment environment{{name, value}};
      const ncclUniqueId id = newId();
      onProcesses(2, [&](int rank) {
        const Comm comm(id, 2, rank);
        for (const size_t count : {size_t{3}, size_t{40009}})
          for (const Movement movement : kMovements)
            expectMovement(movement, comm, 2, rank, hasRoot(movement) ? 1 : -1, count, false, 7);
        return 0;
      });
    }
}

// Calls back to back, of all collectives, roots and sizes, on connections that they share.
TEST(Mixed, CollectivesFollowEachOtherWithoutSynchronisation) {
  for (const int ranks : {2, 3, 5}) {
    const ncclUniqueId id = newId();
    onThreads(ranks, [&](int rank) {
      const Comm comm(id, ranks, rank);
      for (uint32_t call = 0; call < 400; ++call) {
        const Movement movement = kMovements[sent(0, call, 1) / 7 % std::size(kMovements)];
        const auto root = static_cast<int>(sent(1, call, 2) / 5 % static_cast<uint32_t>(ranks));
        const size_t count = sent(2, call, 3) / 3 % (call % 10 == 0 ? 20'000 : 300);
        expectMovement(movement, comm, ranks, rank, root, count, call % 2 == 0, call);
      }
    });
  }
}

}  // namespace
}  // namespace topoccl::test
