// Every algorithm over every transport and protocol through the real machine: each element exact, on all
// ranks the same bits, nothing written outside.
#include <gtest/gtest.h>

#include <tuple>

#include "support/int32_buffers.h"
#include "support/node_ranks.h"

namespace topoccl::test {
namespace {

// Runs one all-reduce and checks everything that can be checked.
void expectExact(NodeRanks& node, int ranks, const Request& request, bool inPlace, int call,
                 bool oneThread = false) {
  Int32Buffers buffers(ranks, request.count, call, inPlace);
  const auto ends = oneThread ? node.runOnOneThread(request, buffers.ins, buffers.outs)
                              : node.run(request, buffers.ins, buffers.outs);
  for (int rank = 0; rank < ranks; ++rank) {
    ASSERT_EQ(ends[static_cast<size_t>(rank)], End::Done) << "rank " << rank;
    ASSERT_EQ(buffers.flawOf(rank, request.op == Operator::Avg ? ranks : 1), "");
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
  for (const uint64_t count : std::initializer_list<uint64_t>{1, 1009, 30011}) {
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
  for (const uint64_t count : std::initializer_list<uint64_t>{5, 30011}) {
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
