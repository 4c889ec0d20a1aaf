// Every emitted schedule, proved.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "algorithms/emitters.h"
#include "schedule/checker.h"

namespace topoccl {
namespace {

// Sanitizers make proofs an order of magnitude slower and find nothing more in many ranks.
#ifdef TOPOCCL_SLOW_BUILD
constexpr int kMostRanks = 20;
#else
constexpr int kMostRanks = 512;
#endif

class Proof : public testing::TestWithParam<Emitter> {};

INSTANTIATE_TEST_SUITE_P(All, Proof, testing::ValuesIn(algorithmRows()), parameterName);

TEST_P(Proof, HoldsForEveryRankCountUpTo64) {
  for (int ranks = 1; ranks <= std::min(64, kMostRanks); ++ranks) {
    for (const int root : rootsOf(GetParam(), ranks)) {
      const Verdict verdict = prove(emitAll(GetParam(), ranks, 1, root), goalOf(GetParam(), ranks, root));
      ASSERT_TRUE(verdict.ok) << ranks << " ranks, root " << root << ": " << verdict.message;
    }
  }
}

TEST_P(Proof, HoldsForSeveralChannels) {
  for (const int channels : {2, 3})
    for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 13, 16, 24}) {
      const int root = ranks - 1;
      const Verdict verdict =
          prove(emitAll(GetParam(), ranks, channels, root), goalOf(GetParam(), ranks, root));
      ASSERT_TRUE(verdict.ok) << ranks << " ranks, " << channels << " channels: " << verdict.message;
    }
}

// Offers in place are the strictest way of running: the other ways were proved above for every shape of
// schedule that there is.
void proveSample(const Emitter& emitter, int ranks, bool inPlace) {
  CheckOptions options;
  options.inPlace = inPlace;
  options.sharing = Sharing::Offers;
  const int root = ranks / 3;
  const Goal goal = goalOf(emitter, ranks, root);
  if (inPlace && !goal.inPlace) return;
  const Verdict verdict = check(emitAll(emitter, ranks, 1, root), goal, options);
  ASSERT_TRUE(verdict.ok) << ranks << " ranks: " << verdict.message;
}

TEST_P(Proof, HoldsForSamplesUpTo129Ranks) {
  for (const int ranks : {65, 100, 127, 128, 129})
    for (const bool inPlace : {false, true})
      if (ranks <= kMostRanks) proveSample(GetParam(), ranks, inPlace);
}

TEST_P(Proof, HoldsForSamplesUpTo512Ranks) {
  for (const int ranks : {255, 256, 300, 511, 512})
    if (ranks <= kMostRanks) proveSample(GetParam(), ranks, true);
}

// Why one-shot declares `copy in place`.
TEST(MeshOneShotProof, NeedsCopiesInPlace) {
  std::vector<Schedule> schedules = emitAll(allReduce(Algorithm::MeshOneShot), 3);
  for (Schedule& schedule : schedules) schedule.copyInPlace = false;
  CheckOptions options;
  options.sharing = Sharing::References;
  EXPECT_TRUE(check(schedules, goalOf(Collective::AllReduce, 3), options).ok);
  options.inPlace = true;
  const Verdict verdict = check(schedules, goalOf(Collective::AllReduce, 3), options);
  EXPECT_NE(verdict.message.find("nothing orders"), std::string::npos) << verdict.message;
}

TEST_P(Proof, DeclaresTheFewestSlotsThatDoNotDeadlock) {
  for (const int ranks : {2, 3, 4, 5, 8, 13}) {
    const std::vector<Schedule> schedules = emitAll(GetParam(), ranks);
    if (schedules[0].minSlots == 1) continue;
    CheckOptions options;
    options.slots = schedules[0].minSlots - 1;
    const Verdict verdict = check(schedules, goalOf(GetParam(), ranks), options);
    EXPECT_FALSE(verdict.ok);
    EXPECT_NE(verdict.message.find("deadlock"), std::string::npos) << verdict.message;
  }
}

}  // namespace
}  // namespace topoccl
