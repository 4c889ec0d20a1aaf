// Every algorithm over every transport and protocol through the real machine: each element exact, on all
// ranks the same bits, nothing written outside.
#include <gtest/gtest.h>

#include <cstring>
#include <tuple>

#include "support/node_ranks.h"

namespace topoccl::test {
namespace {

constexpr size_t kGuardBytes = 64;
constexpr unsigned char kGuard = 0xa5;

// A buffer of int32 with guards on both sides, starting `offset` bytes off alignment.
class Buffer {
 public:
  Buffer(uint64_t count, size_t offset) : bytes_(count * 4), begin_(kGuardBytes + offset) {
    memory_.assign(begin_ + bytes_ + kGuardBytes, kGuard);
  }
  unsigned char* data() { return memory_.data() + begin_; }
  void set(uint64_t i, int32_t value) { std::memcpy(data() + 4 * i, &value, 4); }
  int32_t get(uint64_t i) {
    int32_t value;
    std::memcpy(&value, data() + 4 * i, 4);
    return value;
  }
  bool guardsIntact() const {
    for (size_t i = 0; i < begin_; ++i)
      if (memory_[i] != kGuard) return false;
    for (size_t i = begin_ + bytes_; i < memory_.size(); ++i)
      if (memory_[i] != kGuard) return false;
    return true;
  }

 private:
  size_t bytes_;
  size_t begin_;
  std::vector<unsigned char> memory_;
};

int32_t input(int rank, uint64_t i, int call) {
  return static_cast<int32_t>(mix(mix(static_cast<uint64_t>(rank), i), static_cast<uint64_t>(call)) %
                              100003) -
         50000;
}

// Runs one all-reduce and checks everything that can be checked.
void expectExact(NodeRanks& node, int ranks, const Request& request, bool inPlace, int call,
                 bool oneThread = false) {
  std::vector<Buffer> in, out;
  std::vector<const void*> ins;
  std::vector<void*> outs;
  in.reserve(static_cast<size_t>(ranks));
  out.reserve(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    const size_t offset = static_cast<size_t>(rank % 3) * 4 + static_cast<size_t>(call % 2);
    in.emplace_back(request.count, offset);
    out.emplace_back(request.count, offset);
    for (uint64_t i = 0; i < request.count; ++i) in.back().set(i, input(rank, i, call));
    ins.push_back(in.back().data());
    outs.push_back(inPlace ? in.back().data() : out.back().data());
  }
  const auto ends = oneThread ? node.runOnOneThread(request, ins, outs) : node.run(request, ins, outs);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto r = static_cast<size_t>(rank);
    ASSERT_EQ(ends[r], End::Done) << "rank " << rank;
    Buffer& result = inPlace ? in[r] : out[r];
    for (uint64_t i = 0; i < request.count; ++i) {
      int32_t expected = 0;
      for (int peer = 0; peer < ranks; ++peer) expected += input(peer, i, call);
      if (request.op == Operator::Avg) expected /= ranks;
      ASSERT_EQ(result.get(i), expected) << "rank " << rank << " element " << i << " of " << request.count;
      if (!inPlace) {
        ASSERT_EQ(in[r].get(i), input(rank, i, call)) << "input changed";
      }
    }
    EXPECT_TRUE(in[r].guardsIntact());
    EXPECT_TRUE(out[r].guardsIntact());
  }
}

using Parameters = std::tuple<Algorithm, Protocol, Transport, int>;

class AllReduce : public testing::TestWithParam<Parameters> {
 protected:
  Request request() const {
    Request request;
    request.algorithm = std::get<0>(GetParam());
    request.protocol = std::get<1>(GetParam());
    request.type = DataType::Int32;
    return request;
  }
  Transport transport() const { return std::get<2>(GetParam()); }
  int ranks() const { return std::get<3>(GetParam()); }
};

TEST_P(AllReduce, EveryRankEndsWithTheExactSum) {
  NodeRanks node(ranks(), transport());
  Request request = this->request();
  int call = 0;
  const auto n = static_cast<uint64_t>(ranks());
  for (const uint64_t count :
       {uint64_t{0}, uint64_t{1}, n - 1, n, n + 1, uint64_t{37}, uint64_t{1009}, uint64_t{30011}}) {
    request.count = count;
    for (const bool inPlace : {false, true}) expectExact(node, ranks(), request, inPlace, call++);
  }
}

TEST_P(AllReduce, OneThreadDrivesAllRanks) {
  NodeRanks node(ranks(), transport());
  Request request = this->request();
  request.op = Operator::Avg;
  int call = 0;
  for (const uint64_t count : {1, 1009, 30011}) {
    request.count = count;
    for (const bool inPlace : {false, true}) expectExact(node, ranks(), request, inPlace, call++, true);
  }
}

TEST_P(AllReduce, SeveralChannelsAndStreamedResults) {
  NodeRanks node(ranks(), transport());
  Request request = this->request();
  request.channels = 3;
  request.streamed = true;
  int call = 0;
  for (const uint64_t count : {5, 30011}) {
    request.count = count;
    for (const bool inPlace : {false, true}) expectExact(node, ranks(), request, inPlace, call++);
  }
}

std::string parameterName(const testing::TestParamInfo<Parameters>& info) {
  return concat(topoccl::name(std::get<0>(info.param)), '_', topoccl::name(std::get<1>(info.param)), '_',
                name(std::get<2>(info.param)), '_', std::get<3>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Everywhere, AllReduce,
                         testing::Combine(testing::Values(Algorithm::Ring, Algorithm::Tree,
                                                          Algorithm::MeshOneShot, Algorithm::MeshTwoShot,
                                                          Algorithm::HalvingDoubling),
                                          testing::Values(Protocol::Packet, Protocol::Bulk),
                                          testing::Values(Transport::InProcess, Transport::Shm),
                                          testing::Values(1, 2, 3, 5, 8, 13)),
                         parameterName);

INSTANTIATE_TEST_SUITE_P(OverPumps, AllReduce,
                         testing::Combine(testing::Values(Algorithm::Ring, Algorithm::Tree,
                                                          Algorithm::MeshOneShot, Algorithm::MeshTwoShot,
                                                          Algorithm::HalvingDoubling),
                                          testing::Values(Protocol::Packet, Protocol::Bulk),
                                          testing::Values(Transport::Faulty), testing::Values(3)),
                         parameterName);

}  // namespace
}  // namespace topoccl::test
