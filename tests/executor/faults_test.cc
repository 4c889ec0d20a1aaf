// A bad wire under every algorithm: late slots change nothing; lost and foreign ones end the call on every
// rank, and no rank takes a wrong result for a right one; what the library can't see, the tests' check does.
//
// Data that is damaged without its description being so can't be noticed: slots carry no checksum.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <tuple>

#include "support/int32_buffers.h"
#include "support/node_ranks.h"

namespace topoccl::test {
namespace {

constexpr int kRanks = 3;
constexpr uint64_t kCount = 5000;  // several pieces for every chunk, none of them empty in the middle

using Parameters = std::tuple<Algorithm, Protocol>;

// One slot to be mistreated: message `message` of any connection in which rank `from` is the producer. Where
// there are several, the first to get there is it.
class OneFault {
 public:
  OneFault(Fault fault, int from, uint64_t message) : fault_(fault), from_(from), message_(message) {}

  FatePolicy policy() {
    return [this](const Connection& connection, uint64_t message) {
      SlotFate fate;
      if (connection.from == from_ && message == message_ && !hit_.exchange(true)) fate.fault = fault_;
      return fate;
    };
  }
  bool hit() const { return hit_; }

 private:
  Fault fault_;
  int from_;
  uint64_t message_;
  std::atomic<bool> hit_{false};
};

class BadWire : public testing::TestWithParam<Parameters> {
 protected:
  struct Outcome {
    std::vector<End> ends;
    std::vector<std::string> flaws;

    size_t count(End end) const { return static_cast<size_t>(std::count(ends.begin(), ends.end(), end)); }
  };

  static Request request(uint64_t count = kCount) {
    Request request;
    request.algorithm = std::get<0>(GetParam());
    request.protocol = std::get<1>(GetParam());
    request.type = DataType::Int32;
    request.count = count;
    request.slotBytes = 2048;
    return request;
  }

  static Outcome run(NodeRanks& node, const Request& request, int call, bool inPlace = false) {
    Int32Buffers buffers(kRanks, request.count, call, inPlace);
    Outcome outcome{node.run(request, buffers.ins, buffers.outs), {}};
    for (int rank = 0; rank < kRanks; ++rank) outcome.flaws.push_back(buffers.flawOf(rank));
    return outcome;
  }

  // One call with one fault; checks that ranks which end well have the right result.
  template <class Check>
  static void tryFaults(Fault kind, const Check& check) {
    // Only what never arrives needs to be given up, and soon.
    const std::chrono::milliseconds patience(kind == Fault::Drop ? 150 : 60'000);
    int hits = 0;
    for (const int from : {0, 2})
      for (const uint64_t message : std::initializer_list<uint64_t>{0, 1, 3}) {
        OneFault fault(kind, from, message);
        NodeRanks node(kRanks, Transport::Faulty, fault.policy(), {.waiting = {}, .patience = patience});
        const Outcome outcome = run(node, request(), 1);
        if (!fault.hit()) continue;
        ++hits;
        check(outcome, concat("message ", message, " from ", from));
      }
    EXPECT_GE(hits, 2) << "the test found too little to damage";
  }

  static void expectNoSilentError(const Outcome& outcome, const std::string& where) {
    for (size_t r = 0; r < kRanks; ++r) {
      if (outcome.ends[r] == End::Done) {
        EXPECT_EQ(outcome.flaws[r], "") << where;
      }
    }
    EXPECT_LT(outcome.count(End::Done), size_t{kRanks}) << where;
  }
};

TEST_P(BadWire, DelaysChangeNothing) {
  std::atomic<uint64_t> seed{1};
  const auto delay = [&](const Connection& connection, uint64_t message) {
    SlotFate fate;
    const uint64_t draw = mix(seed.fetch_add(1), mix(static_cast<uint64_t>(connection.from), message));
    if (draw % 4 == 0) fate.delay = std::chrono::microseconds(draw / 4 % 500);
    return fate;
  };
  NodeRanks node(kRanks, Transport::Faulty, delay);
  int call = 0;
  for (const uint64_t count : {uint64_t{0}, uint64_t{1}, uint64_t{1009}, kCount})
    for (const bool inPlace : {false, true}) {
      const Outcome outcome = run(node, request(count), ++call, inPlace);
      EXPECT_EQ(outcome.count(End::Done), size_t{kRanks});
      for (const std::string& flaw : outcome.flaws) EXPECT_EQ(flaw, "") << "count " << count;
    }
}

TEST_P(BadWire, ALostSlotEndsTheCallOnEveryRank) {
  tryFaults(Fault::Drop, expectNoSilentError);
}

TEST_P(BadWire, AForeignSlotIsRefused) {
  tryFaults(Fault::CorruptHeader, [](const Outcome& outcome, const std::string& where) {
    expectNoSilentError(outcome, where);
    EXPECT_GE(outcome.count(End::Failed), 1U) << where << ": nobody noticed, all gave up waiting";
  });
}

TEST_P(BadWire, DamagedDataIsSeenByTheTestsCheck) {
  tryFaults(Fault::CorruptPayload, [](const Outcome& outcome, const std::string& where) {
    EXPECT_EQ(outcome.count(End::Done), size_t{kRanks}) << where;
    EXPECT_TRUE(std::any_of(outcome.flaws.begin(), outcome.flaws.end(), [](const std::string& flaw) {
      return !flaw.empty();
    })) << where;
  });
}

std::string parameterName(const testing::TestParamInfo<Parameters>& info) {
  return concat(topoccl::name(std::get<0>(info.param)), '_', topoccl::name(std::get<1>(info.param)));
}

INSTANTIATE_TEST_SUITE_P(Everywhere, BadWire,
                         testing::Combine(testing::Values(Algorithm::Ring, Algorithm::Tree,
                                                          Algorithm::MeshOneShot, Algorithm::MeshTwoShot,
                                                          Algorithm::HalvingDoubling),
                                          testing::Values(Protocol::Packet, Protocol::Bulk)),
                         parameterName);

}  // namespace
}  // namespace topoccl::test
