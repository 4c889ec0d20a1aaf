// All-reduce as users call it: threads and processes, groups, every forced algorithm and protocol.
#include <cstring>
#include <tuple>

#include "communicator/ranks.h"
#include "topoccl.h"

namespace topoccl::test {
namespace {

const std::vector<int> kRanks = {1, 2, 3, 5, 8, 13};
const std::vector<size_t> kCounts = {0, 1, 2, 3, 7, 1009, 40009, 300007};

TEST(AllReduce, IsExactOnThreads) {
  for (const int ranks : kRanks) {
    const ncclUniqueId id = newId();
    onThreads(ranks, [&](int rank) {
      const Comm comm(id, ranks, rank);
      for (const size_t count : kCounts)
        for (const bool inPlace : {false, true}) expectSum(comm, ranks, rank, count, inPlace);
    });
  }
}

TEST(AllReduce, IsExactOnProcesses) {
  for (const int ranks : kRanks) {
    const ncclUniqueId id = newId();
    onProcesses(ranks, [&](int rank) {
      const Comm comm(id, ranks, rank);
      for (const size_t count : kCounts)
        for (const bool inPlace : {false, true}) expectSum(comm, ranks, rank, count, inPlace);
      return 0;
    });
  }
}

TEST(AllReduce, ThreadsAndProcessesMix) {
  const ncclUniqueId id = newId();
  onProcesses(2, [&](int process) {
    onThreads(3, [&](int thread) {
      const int rank = thread * 2 + process;  // neighbours in other processes
      const Comm comm(id, 6, rank);
      for (const size_t count : kCounts) expectSum(comm, 6, rank, count);
    });
    return 0;
  });
}

TEST(AllReduce, RunsEveryForcedAlgorithmAndProtocol) {
  for (const std::string algorithm : {"ring", "tree", "mesh_oneshot", "mesh_twoshot", "halving_doubling"})
    for (const std::string protocol : {"LL", "Simple"})
      for (const int ranks : {2, 5}) {
        const Environment environment{{"NCCL_ALGO", algorithm}, {"NCCL_PROTO", protocol}};
        const ncclUniqueId id = newId();
        onThreads(ranks, [&](int rank) {
          const Comm comm(id, ranks, rank);
          topocclPlan_t plan;
          ASSERT_EQ(topocclCommExplain(comm, "all_reduce", 1000, ncclFloat, &plan), ncclSuccess);
          EXPECT_EQ(plan.algorithm, algorithm);
          EXPECT_STREQ(plan.protocol, protocol == "LL" ? "packet" : "bulk");
          for (const size_t count : kCounts) expectSum(comm, ranks, rank, count);
        });
      }
}

template <class T>
void expectOperators(ncclComm_t comm, int ranks, int rank, ncclDataType_t type, T tolerance) {
  constexpr size_t kCount = 5003;
  for (const ncclRedOp_t op : {ncclSum, ncclMax, ncclAvg}) {
    std::vector<T> in(kCount), out(kCount);
    for (size_t i = 0; i < kCount; ++i) in[i] = static_cast<T>(input(rank, i));
    ASSERT_EQ(ncclAllReduce(in.data(), out.data(), kCount, type, op, comm, nullptr), ncclSuccess);
    for (size_t i = 0; i < kCount; ++i) {
      double sum = 0, largest = input(0, i);
      for (int peer = 0; peer < ranks; ++peer) {
        sum += input(peer, i);
        largest = std::max(largest, static_cast<double>(input(peer, i)));
      }
      const double expected = op == ncclSum ? sum : op == ncclMax ? largest : sum / ranks;
      ASSERT_LE(std::abs(static_cast<double>(out[i]) - static_cast<double>(static_cast<T>(expected))),
                tolerance)
          << "op " << op << " element " << i;
    }
  }
}

TEST(AllReduce, KnowsTypesAndOperators) {
  constexpr int kThree = 3;
  const ncclUniqueId id = newId();
  onThreads(kThree, [&](int rank) {
    const Comm comm(id, kThree, rank);
    expectOperators<float>(comm, kThree, rank, ncclFloat, 1e-4F);
    expectOperators<double>(comm, kThree, rank, ncclDouble, 1e-12);
    expectOperators<int32_t>(comm, kThree, rank, ncclInt32, 0);
  });
}

// The bits of 1, 2, 3 and 3 / 2 in each type; integers truncate the last.
struct SmallNumbers {
  ncclDataType_t type;
  size_t bytes;
  uint64_t one, two, three, half;
};
constexpr SmallNumbers kSmallNumbers[] = {
    {ncclInt8, 1, 1, 2, 3, 1},
    {ncclUint8, 1, 1, 2, 3, 1},
    {ncclInt32, 4, 1, 2, 3, 1},
    {ncclUint32, 4, 1, 2, 3, 1},
    {ncclInt64, 8, 1, 2, 3, 1},
    {ncclUint64, 8, 1, 2, 3, 1},
    {ncclFloat16, 2, 0x3c00, 0x4000, 0x4200, 0x3e00},
    {ncclFloat32, 4, 0x3f800000, 0x40000000, 0x40400000, 0x3fc00000},
    {ncclFloat64, 8, 0x3ff0000000000000, 0x4000000000000000, 0x4008000000000000, 0x3ff8000000000000},
    {ncclBfloat16, 2, 0x3f80, 0x4000, 0x4040, 0x3fc0},
    {ncclFloat8e4m3, 1, 0x38, 0x40, 0x44, 0x3c},
    {ncclFloat8e5m2, 1, 0x3c, 0x40, 0x42, 0x3e}};

// One rank holds ones, the other twos.
TEST(AllReduce, TakesEveryTypeAndOperator) {
  constexpr size_t kCount = 1009;
  const ncclUniqueId id = newId();
  onThreads(2, [&](int rank) {
    const Comm comm(id, 2, rank);
    for (const SmallNumbers& numbers : kSmallNumbers) {
      const std::pair<ncclRedOp_t, uint64_t> expected[] = {{ncclSum, numbers.three},
                                                           {ncclProd, numbers.two},
                                                           {ncclMax, numbers.two},
                                                           {ncclMin, numbers.one},
                                                           {ncclAvg, numbers.half}};
      for (const auto& [op, result] : expected) {
        std::vector<unsigned char> data(kCount * numbers.bytes);
        for (size_t i = 0; i < kCount; ++i)
          std::memcpy(&data[i * numbers.bytes], rank == 0 ? &numbers.one : &numbers.two, numbers.bytes);
        ASSERT_EQ(ncclAllReduce(data.data(), data.data(), kCount, numbers.type, op, comm, nullptr),
                  ncclSuccess);
        for (size_t i = 0; i < kCount; ++i)
          ASSERT_EQ(std::memcmp(&data[i * numbers.bytes], &result, numbers.bytes), 0)
              << "type " << numbers.type << " op " << op << " element " << i;
      }
    }
  });
}

size_t bytesOf(ncclDataType_t type) {
  for (const SmallNumbers& numbers : kSmallNumbers)
    if (numbers.type == type) return numbers.bytes;
  return 0;
}

// Data whose sums, averages and roundings depend on the order of operations, as raw bytes of any type.
std::vector<unsigned char> roughInput(int rank, size_t bytes, ncclDataType_t type) {
  std::vector<unsigned char> data(bytes);
  uint64_t state = 88172645463325252 + static_cast<uint64_t>(rank) * 7919;
  const auto next = [&] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<double>(state % 2000003) / 1000.0 - 1000.0;
  };
  const size_t element = bytesOf(type);
  for (size_t at = 0; at + element <= bytes; at += element) {
    const double value = next();
    const auto narrow = static_cast<float>(value);
    const auto whole = static_cast<int32_t>(value * 1000);
    if (type == ncclDouble) std::memcpy(&data[at], &value, 8);
    if (type == ncclFloat) std::memcpy(&data[at], &narrow, 4);
    if (type == ncclInt32) std::memcpy(&data[at], &whole, 4);
    if (type == ncclBfloat16) std::memcpy(&data[at], reinterpret_cast<const unsigned char*>(&narrow) + 2, 2);
    const uint16_t half = static_cast<uint16_t>((state & 0x8fff) | 0x3000);  // 2^-3 to 2, either sign
    const auto byte = static_cast<unsigned char>(state & 0xbf);
    if (type == ncclFloat16) std::memcpy(&data[at], &half, 2);
    if (type == ncclFloat8e4m3 || type == ncclFloat8e5m2) data[at] = byte;
  }
  return data;
}

// Once, averages of bfloat16 differed: a rank's own input was not rounded as its peers' were in slots.
TEST(AllReduce, GivesAllRanksTheSameBits) {
  constexpr size_t kBytes = 40000;
  for (const std::string algorithm : {"ring", "tree", "mesh_oneshot", "mesh_twoshot", "halving_doubling"})
    for (const int ranks : {3, 7}) {
      const Environment environment{{"NCCL_ALGO", algorithm}};
      std::vector<ncclComm_t> comms(static_cast<size_t>(ranks));
      ASSERT_EQ(ncclCommInitAll(comms.data(), ranks, nullptr), ncclSuccess);
      for (const ncclDataType_t type :
           {ncclFloat, ncclDouble, ncclInt32, ncclBfloat16, ncclFloat16, ncclFloat8e4m3, ncclFloat8e5m2})
        for (const ncclRedOp_t op : {ncclSum, ncclMax, ncclAvg})
          for (const bool inPlace : {false, true}) {
            const size_t count = kBytes / bytesOf(type);
            std::vector<std::vector<unsigned char>> results(static_cast<size_t>(ranks));
            onThreads(ranks, [&](int rank) {
              auto& result = results[static_cast<size_t>(rank)];
              std::vector<unsigned char> in = roughInput(rank, kBytes, type);
              result.resize(kBytes);
              void* const out = inPlace ? in.data() : result.data();
              ASSERT_EQ(
                  ncclAllReduce(in.data(), out, count, type, op, comms[static_cast<size_t>(rank)], nullptr),
                  ncclSuccess);
              if (inPlace) result = in;
            });
            for (int rank = 1; rank < ranks; ++rank)
              EXPECT_EQ(std::memcmp(results[0].data(), results[static_cast<size_t>(rank)].data(), kBytes), 0)
                  << algorithm << " ranks " << ranks << " rank " << rank << " type " << type << " op " << op;
          }
      for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    }
}

TEST(Group, OneThreadDrivesManyRanks) {
  for (const int ranks : {1, 2, 5, 8}) {
    std::vector<ncclComm_t> comms(static_cast<size_t>(ranks));
    ASSERT_EQ(ncclCommInitAll(comms.data(), ranks, nullptr), ncclSuccess) << ncclGetLastError(nullptr);
    constexpr size_t kCount = 50021;
    std::vector<std::vector<float>> buffers;
    for (int rank = 0; rank < ranks; ++rank) {
      buffers.emplace_back(kCount);
      for (size_t i = 0; i < kCount; ++i) buffers.back()[i] = input(rank, i);
    }
    // Two calls per rank, nested groups, ranks in falling order.
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int call = 0; call < 2; ++call) {
      ASSERT_EQ(ncclGroupStart(), ncclSuccess);
      for (size_t rank = comms.size(); rank-- > 0;)
        ASSERT_EQ(ncclAllReduce(buffers[rank].data(), buffers[rank].data(), kCount, ncclFloat, ncclSum,
                                comms[rank], nullptr),
                  ncclSuccess);
      ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    }
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
    for (const auto& buffer : buffers)
      for (size_t i = 0; i < kCount; ++i) {
        float sum = 0;
        for (int peer = 0; peer < ranks; ++peer) sum += input(peer, i);
        ASSERT_EQ(buffer[i], sum * static_cast<float>(ranks));
      }
    for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  }
}

TEST(Group, InitsOfOneThreadRunTogether) {
  constexpr int kRanksHere = 4;
  const ncclUniqueId id = newId();
  std::vector<ncclComm_t> comms(kRanksHere);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int rank = 0; rank < kRanksHere; ++rank)
    ASSERT_EQ(ncclCommInitRank(&comms[static_cast<size_t>(rank)], kRanksHere, id, rank), ncclSuccess);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
  onThreads(kRanksHere,
            [&](int rank) { expectSum(comms[static_cast<size_t>(rank)], kRanksHere, rank, 1000); });
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

// Rank 0's thread issues X then Y in one group, rank 1's calls Y only after X is done.
TEST(Group, OfSeveralCommunicatorsDoesNotWaitForOneBeforeTheOther) {
  const ncclUniqueId x = newId(), y = newId();
  onThreads(2, [&](int rank) {
    const Comm commX(x, 2, rank), commY(y, 2, rank);
    std::vector<float> a(100, 1), b(100, 2);
    const auto callX = [&] {
      return ncclAllReduce(a.data(), a.data(), 100, ncclFloat, ncclSum, commX, nullptr);
    };
    const auto callY = [&] {
      return ncclAllReduce(b.data(), b.data(), 100, ncclFloat, ncclSum, commY, nullptr);
    };
    if (rank == 0) {
      ASSERT_EQ(ncclGroupStart(), ncclSuccess);
      EXPECT_EQ(callY(), ncclSuccess);
      EXPECT_EQ(callX(), ncclSuccess);
      ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    } else {
      EXPECT_EQ(callX(), ncclSuccess);
      EXPECT_EQ(callY(), ncclSuccess);
    }
    EXPECT_EQ(a[99], 2);
    EXPECT_EQ(b[99], 4);
  });
}

TEST(AllReduce, SurvivesASoakOfMixedSizes) {
  constexpr int kRanksHere = 3;
  const int calls = std::getenv("TOPOCCL_TEST_REDUCED") != nullptr ? 200 : 2000;
  const ncclUniqueId id = newId();
  onThreads(kRanksHere, [&](int rank) {
    const Comm comm(id, kRanksHere, rank);
    uint64_t state = 12345;
    for (int call = 0; call < calls; ++call) {
      state = state * 6364136223846793005 + 1442695040888963407;
      const size_t count = (state >> 33) % (call % 50 == 0 ? 200000 : 3000);
      expectSum(comm, kRanksHere, rank, count, (state >> 40) % 2 == 0);
    }
  });
}

}  // namespace
}  // namespace topoccl::test
