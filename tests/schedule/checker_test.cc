// Every rule of the checker, broken by hand.
#include "schedule/checker.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "schedule/text.h"

namespace topoccl {
namespace {

CheckOptions outOfPlace(Sharing sharing = Sharing::Copies) {
  CheckOptions options;
  options.sharing = sharing;
  return options;
}

CheckOptions inPlace(Sharing sharing = Sharing::Copies) {
  CheckOptions options = outOfPlace(sharing);
  options.inPlace = true;
  return options;
}

std::vector<Schedule> parseAll(const std::vector<std::string>& texts) {
  std::vector<Schedule> schedules;
  for (const std::string& text : texts) schedules.push_back(parse(text));
  return schedules;
}

std::string verdictOf(const std::vector<std::string>& texts, const CheckOptions& options = outOfPlace()) {
  const auto schedules = parseAll(texts);
  return check(schedules, goalOf(Collective::AllReduce, static_cast<int>(texts.size())), options).message;
}

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

// Two ranks, each of which sends its data to the other. `lanes` come after these lines.
std::string pair(int rank, const std::string& lanes,
                 const std::string& header = "chunks 1, scratch 0, slots 1") {
  return "rank " + std::to_string(rank) + " of 2, " + header +
         "\n"
         "connection 0: 0 -> 1 channel 0 tag 0\n"
         "connection 1: 1 -> 0 channel 0 tag 0\n" +
         lanes;
}

const char* const kGood0 = "lane 0\n 0: in -> s0\n 0: in + r1 -> out final\n";
const char* const kGood1 = "lane 0\n 0: in -> s1\n 0: r0 + in -> out final\n";

TEST(Checker, AcceptsARightSchedule) {
  const Verdict verdict =
      check(parseAll({pair(0, kGood0), pair(1, kGood1)}), goalOf(Collective::AllReduce, 2), inPlace());
  EXPECT_TRUE(verdict.ok) << verdict.message;
  // Two works of three pieces with four steps.
  EXPECT_EQ(verdict.steps, 24u);
}

TEST(Checker, NamesModeRankLaneStepAndReason) {
  EXPECT_EQ(
      verdictOf({pair(0, kGood0), pair(1, "lane 0\n 0: in -> s1\n 0: r0 + out -> out final\n")}),
      "out of place, copies, 1 slots: rank 1 lane 0 step 1 `0: r0 + out -> out final`: reads out chunk 0 of "
      "rank 1, which was not written yet");
}

TEST(Checker, WantsAllRanksToAgree) {
  const auto other = [](const std::string& header) {
    return verdictOf({pair(0, kGood0), pair(1, kGood1, header)});
  };
  EXPECT_EQ(other("chunks 2, scratch 0, slots 1"), "rank 1 has 2 chunks where rank 0 has 1");
  EXPECT_EQ(other("chunks 1, scratch 0, slots 2"), "rank 1 has 2 slots where rank 0 has 1");
  EXPECT_EQ(other("chunks 1, scratch 0, slots 1, copy in place"),
            "rank 1 has 1 `copy in place` where rank 0 has 0");
  EXPECT_EQ(other("chunks 1, scratch 0, slots 1 of 2 chunks"),
            "rank 1 has 2 chunks in a slot where rank 0 has 1");
  EXPECT_EQ(verdictOf({pair(0, kGood0, "chunks 2, scratch 0, slots 1"),
                       pair(1, kGood1, "chunks 2 in 2 blocks, scratch 0, slots 1")}),
            "rank 1 has 2 blocks where rank 0 has 1");
  EXPECT_EQ(verdictOf({}), "there are no schedules");
  EXPECT_EQ(verdictOf({pair(0, kGood0), pair(0, kGood0)}), "schedule 1 of 2 is for rank 0 of 2");
}

TEST(Checker, WantsBothEndsToKnowAConnection) {
  std::vector<Schedule> schedules = parseAll({pair(0, kGood0), pair(1, kGood1)});
  schedules[1].connections[0].tag = 9;
  const Verdict verdict = check(schedules, goalOf(Collective::AllReduce, 2), outOfPlace());
  EXPECT_CONTAINS(verdict.message, "only 1 of its ranks have it");
}

TEST(Checker, WantsSchedulesToBeValid) {
  const auto damaged = [](auto change) {
    std::vector<Schedule> schedules = parseAll({pair(0, kGood0), pair(1, kGood1)});
    change(schedules[1]);
    return check(schedules, goalOf(Collective::AllReduce, 2), outOfPlace()).message;
  };
  EXPECT_EQ(damaged([](Schedule& s) { s.steps[1].inChunk = 1; }),
            "rank 1 lane 0 step 1: chunk 1: there are only 1");
  EXPECT_EQ(damaged([](Schedule& s) { s.steps[1].span = 0; }), "rank 1 lane 0 step 1: it spans no chunk");
  EXPECT_EQ(damaged([](Schedule& s) { s.steps[1].inputCount = 0; }), "rank 1 lane 0 step 1: it has no input");
  EXPECT_EQ(damaged([](Schedule& s) { s.steps[1].outputCount = 0; }),
            "rank 1 lane 0 step 1: it has no output");
  EXPECT_EQ(damaged([](Schedule& s) { s.steps[1].firstOperand = 9; }),
            "rank 1 lane 0 step 1: its operands lie outside the schedule");
  EXPECT_EQ(damaged([](Schedule& s) { s.lanes[0].stepCount = 9; }),
            "rank 1 lane 0: its steps lie outside the schedule");
  EXPECT_EQ(damaged([](Schedule& s) { s.operands[2].connection = 7; }),
            "rank 1 lane 0 step 1: r7: there are only 2 connections");
  EXPECT_EQ(damaged([](Schedule& s) { s.operands[0].place = Place::Send; }),
            "rank 1 lane 0 step 0: s0 can't be an input");
  EXPECT_EQ(damaged([](Schedule& s) { s.operands[1].place = Place::In; }),
            "rank 1 lane 0 step 0: in can't be an output");
  EXPECT_EQ(damaged([](Schedule& s) { s.operands[2].connection = 1; }),
            "rank 1 lane 0 step 1: r1: rank 1 is no reader of that connection");
  EXPECT_EQ(damaged([](Schedule& s) { s.connections[1] = s.connections[0]; }),
            "rank 1 connection 1: 0 -> 1 channel 0 tag 0: it is there already");
  EXPECT_EQ(damaged([](Schedule& s) { s.connections[1].readers = {}; }),
            "rank 1 connection 1: 1 -> channel 0 tag 0: nobody reads it");
  EXPECT_EQ(damaged([](Schedule& s) { s.minSlots = 0; }), "rank 1 there must be at least one slot");
  EXPECT_EQ(damaged([](Schedule& s) {
              s.lanes = {{0, 1}, {1, 1}, {1, 1}};
            }),
            "rank 1 lane 2 step 0: r0 belongs to lane 1");
}

TEST(Checker, WantsEachContributionExactlyOnce) {
  EXPECT_CONTAINS(
      verdictOf({pair(0, kGood0), pair(1, "lane 0\n 0: in -> s1\n 0: in + in + r0 -> out final\n")}),
      "rank 1 out chunk 0 piece 0 contains rank 1 2 times: final((in@1 + in@1 + in@0))");
  EXPECT_CONTAINS(verdictOf({pair(0, kGood0), pair(1, "lane 0\n 0: in -> s1\n 0: r0 -> out final\n")}),
                  "rank 1 out chunk 0 piece 0 lacks rank 1");
  const std::string two = "chunks 2, scratch 0, slots 2 of 2 chunks";
  const std::string rank0 =
      "lane 0\n 0: in -> s0\n 1: in -> s0\n 0: in + r1 -> out final\n 1: in + r1 -> out final\n";
  const std::string rank1 =
      "lane 0\n 0: in -> s1\n 0 > 1: in -> s1\n 0: r0 + in -> out final\n 1: r0 + in -> out final\n";
  CheckOptions equalChunks;
  equalChunks.unequalChunks = false;
  EXPECT_CONTAINS(verdictOf({pair(0, rank0, two), pair(1, rank1, two)}, equalChunks),
                  "rank 0 out chunk 1 piece 0 contains in chunk 0 of rank 1, which does not belong there: "
                  "final((in@0 + in@1.0))");
  EXPECT_CONTAINS(verdictOf({pair(0, rank0, two), pair(1, rank1, two)}),
                  "adds pieces of different chunks, which differ in size");
}

TEST(Checker, SeesThatRanksWithoutLanesDoNothing) {
  for (const CheckOptions& options : {outOfPlace(), inPlace()})
    EXPECT_CONTAINS(verdictOf({pair(0, ""), pair(1, "")}, options), "rank 0 out chunk 0");
}

TEST(Checker, WantsTheSameExpressionOnAllRanks) {
  EXPECT_CONTAINS(
      verdictOf({pair(0, kGood0), pair(1, "lane 0\n 0: in -> s1\n 0: in + r0 -> out final\n")}),
      "rank 1 out chunk 0 piece 0 is computed in another order than final((in@0 + in@1)) of rank 0: "
      "final((in@1 + in@0))");
}

TEST(Checker, WantsFinalOnceAndOnlyOnTheSum) {
  EXPECT_CONTAINS(verdictOf({pair(0, "lane 0\n 0: in -> s0\n 0: in + r1 -> out\n"), pair(1, kGood1)}),
                  "never had `final` applied");
  EXPECT_CONTAINS(
      verdictOf({pair(0, "lane 0\n 0: in -> s0 final\n 0: in + r1 -> out final\n"), pair(1, kGood1)}),
      "takes a result that has had `final` applied for a partial one");
  EXPECT_CONTAINS(
      verdictOf({pair(0, "lane 0\n 0: in -> s0\n 0: in + r1 -> out final\n 0: out -> out final\n"),
                 pair(1, kGood1)}),
      "takes a result that has had `final` applied for a partial one");
  Goal goal = goalOf(Collective::AllReduce, 2);
  goal.final = false;
  EXPECT_CONTAINS(check(parseAll({pair(0, kGood0), pair(1, kGood1)}), goal, outOfPlace()).message,
                  "had `final` applied, which this collective does not have");
}

TEST(Checker, WantsMessagesToMatchTheirReceivers) {
  const std::string two = "chunks 2, scratch 0, slots 2 of 2 chunks";
  EXPECT_CONTAINS(
      verdictOf({pair(0, "lane 0\n 1: in -> s0\n", two), pair(1, "lane 0\n 0: r0 -> out\n", two)}),
      "r0 brings chunk 1 span 1 piece 0 (of rank 0 lane 0 step 0 `1: in -> s0`) where chunk 0 span 1 "
      "piece 0 is expected");
  EXPECT_CONTAINS(verdictOf({pair(0, "lane 0\n 0-1: in -> s0\n", two),
                             pair(1, "lane 0\n 0: r0 -> out\n 0-1: in -> out\n", two)}),
                  "r0 brings chunk 0 span 2 piece 0");
  EXPECT_CONTAINS(verdictOf({pair(0, "lane 0\n 0: in -> s0\n 0: in -> s0\n", two),
                             pair(1, "lane 0\n 0: r0 -> out\n", two)}),
                  "r0 brings chunk 0 span 1 piece 0");
}

TEST(Checker, WantsNothingLeftInFlight) {
  const std::string eight = "chunks 1, scratch 0, slots 8";
  EXPECT_CONTAINS(
      verdictOf({pair(0, "lane 0\n 0: in -> s0\n", eight), pair(1, "lane 0\n 0: in -> out\n", eight)}),
      "deadlock");
  CheckOptions options;
  options.pieces = 3;
  EXPECT_CONTAINS(
      verdictOf({pair(0, "lane 0\n 0: in -> s0\n", eight), pair(1, "lane 0\n 0: in -> out\n", eight)},
                options),
      "rank 1 never takes chunk 0 piece 0 from connection 0 -> 1 channel 0 tag 0, sent by rank 0 lane 0 "
      "step 0 `0: in -> s0`");
}

TEST(Checker, SeesDeadlocksAndWhoWaitsForWhom) {
  const char* const early0 = "lane 0\n 0: in + r1 -> out\n 0: in -> s0\n";
  const char* const early1 = "lane 0\n 0: in + r0 -> out\n 0: in -> s1\n";
  EXPECT_EQ(
      verdictOf({pair(0, early0), pair(1, early1)}),
      "out of place, copies, 1 slots: deadlock: rank 0 lane 0 step 0 `0: in + r1 -> out` waits for a message "
      "on connection 1 -> 0 channel 0 tag 0; rank 1 lane 0 step 0 `0: in + r0 -> out` waits for a message on "
      "connection 0 -> 1 channel 0 tag 0; and so on");
  EXPECT_CONTAINS(verdictOf({pair(0, "lane 0\n 0: in + r1 -> out\n"), pair(1, "lane 0\n 0: in -> out\n")}),
                  "waits for a message on connection 1 -> 0 channel 0 tag 0");
  const char* const twice = "lane 0\n 0: in -> s0\n 0: in -> s0\n 0: in + r1 -> out final\n";
  EXPECT_CONTAINS(verdictOf({pair(0, twice), pair(1, kGood1)}), "rank 1 lane 0 step 1");
}

TEST(Checker, SeesThatSlotsRunOut) {
  const std::string two = "chunks 2, scratch 0, slots 1";
  const std::string ahead0 =
      "lane 0\n 0: in -> s0\n 1: in -> s0\n 0: in + r1 -> out final\n 1: in + r1 -> out final\n";
  const std::string ahead1 =
      "lane 0\n 0: in -> s1\n 1: in -> s1\n 0: r0 + in -> out final\n 1: r0 + in -> out final\n";
  EXPECT_CONTAINS(verdictOf({pair(0, ahead0, two), pair(1, ahead1, two)}),
                  "waits for a free slot on connection 0 -> 1 channel 0 tag 0");
  CheckOptions options;
  options.slots = 2;
  EXPECT_EQ(verdictOf({pair(0, ahead0, two), pair(1, ahead1, two)}, options), "");
}

// Everyone must read a broadcast: a reader that doesn't fills it up.
TEST(Checker, WantsEveryReaderToReadABroadcast) {
  const auto text = [](int rank, const std::string& lanes) {
    return "rank " + std::to_string(rank) + " of 3, chunks 1, scratch 0, slots 1\n" +
           "connection 0: 0 -> 1,2 channel 0 tag 0\n" + lanes;
  };
  EXPECT_CONTAINS(verdictOf({text(0, "lane 0\n 0: in -> s0\n"), text(1, "lane 0\n 0: r0 -> out\n"),
                             text(2, "lane 0\n 0: in -> out\n")}),
                  "rank 0 lane 0 step 0 `0: in -> s0` waits for a free slot on connection 0 -> 1,2");
}

TEST(Checker, WantsMemoryWrittenBeforeItIsRead) {
  const std::string scratch = "chunks 1, scratch 1, slots 1";
  EXPECT_CONTAINS(verdictOf({pair(0, "lane 0\n 0: scratch -> out\n", scratch), pair(1, kGood1)}),
                  "reads scratch chunk 0 of rank 0, which was not written yet");
  EXPECT_CONTAINS(verdictOf({pair(0, "lane 0\n 0: out -> s0\n"), pair(1, kGood1)}, inPlace()),
                  "reads out chunk 0 of rank 0, which was not written yet");
  const std::string missing = "lane 0\n 0: in -> s1\n 0: r0 + in -> scratch final\n";
  EXPECT_CONTAINS(verdictOf({pair(0, kGood0), pair(1, missing, scratch)}),
                  "rank 1 out chunk 0 piece 0 is never written");
}

TEST(Checker, WantsInReadBeforeItIsOverwrittenInPlace) {
  const char* const late = "lane 0\n 0: in -> out\n 0: in -> s0\n 0: in + r1 -> out final\n";
  EXPECT_EQ(verdictOf({pair(0, late), pair(1, kGood1)}), "");
  EXPECT_CONTAINS(verdictOf({pair(0, late), pair(1, kGood1)}, inPlace()),
                  "step 1 `0: in -> s0`: reads in chunk 0 of rank 0, which was overwritten in place");
  const char* const never = "lane 0\n 0: in + r1 -> s0 final\n";
  const char* const store = "lane 0\n 0: in -> s1\n 0: r0 -> out\n";
  EXPECT_CONTAINS(verdictOf({pair(0, never), pair(1, store)}, inPlace()),
                  "rank 0 out chunk 0 piece 0 still holds what the user put there");
}

TEST(Checker, RefusesStepsThatShiftMemoryOntoItself) {
  const std::string three = "rank 0 of 1, chunks 3, scratch 0, slots 1 of 2 chunks\n";
  const std::string shift = three + "lane 0\n 0-1 > 1-2: in -> out\n";
  EXPECT_CONTAINS(verdictOf({shift}, inPlace()), "its input and output overlap but are not the same");
  EXPECT_EQ(verdictOf({shift}).find("overlap"), std::string::npos);
}

TEST(Checker, RefusesToMixChunksOfDifferentSize) {
  const std::string three = "rank 0 of 1, chunks 3, scratch 1, slots 1\n";
  EXPECT_CONTAINS(verdictOf({three + "lane 0\n 1 > 0: in -> scratch\n 0: scratch + in -> out final\n"}),
                  "adds pieces of different chunks, which differ in size");
}

// Lanes of one rank run in any interleaving.
TEST(Checker, SeesRacesBetweenLanes) {
  const std::string scratch = "chunks 1, scratch 1, slots 1";
  EXPECT_CONTAINS(
      verdictOf({pair(0, "lane 0\n 0: in -> scratch\nlane 1\n 0: scratch -> out\n", scratch),
                 pair(1, "lane 0\n 0: in -> out\n")}),
      "rank 0 lane 1 step 0 `0: scratch -> out`: reads scratch chunk 0 piece 0 of rank 0 while nothing "
      "orders that after rank 0 lane 0 step 0 `0: in -> scratch`");
  EXPECT_CONTAINS(verdictOf({pair(0, "lane 0\n 0: in -> out\nlane 1\n 0: in -> out\n"),
                             pair(1, "lane 0\n 0: in -> out\n")}),
                  "writes out chunk 0 piece 0 of rank 0 while nothing orders");
}

// Sending and storing in lanes of their own: in place the store overwrites what the send reads, unless the
// peer's message can only come after it.
TEST(Checker, SeesRacesThatOnlyInPlaceHas) {
  const char* const loose0 = "lane 0\n 0: in -> s0\nlane 1\n 0: in + r1 -> out final\n";
  const char* const loose1 = "lane 0\n 0: in -> s1\nlane 1\n 0: r0 + in -> out final\n";
  EXPECT_EQ(verdictOf({pair(0, loose0), pair(1, loose1)}), "");
  EXPECT_CONTAINS(verdictOf({pair(0, loose0), pair(1, loose1)}, inPlace()),
                  "writes out chunk 0 piece 0 of rank 1 while nothing orders that after rank 1 lane 0 step 0 "
                  "`0: in -> s1`");
  // A reducer in between orders them: the result depends on what was sent.
  const char* const up = "lane 0\n 0: in -> s1\nlane 1\n 0: r0 -> out\n";
  EXPECT_EQ(verdictOf({pair(0, "lane 0\n 0: in + r1 -> out, s0 final\n"), pair(1, up)}, inPlace()), "");
}

// With one slot lane 0 can only send twice when lane 1 has taken the first message, which it does after it
// wrote scratch: in every run with one slot the last step finds what it wants. With two it need not.
TEST(Checker, DoesNotTakeFreedSlotsForOrder) {
  const std::string freed =
      "rank 0 of 1, chunks 1, scratch 2, slots 1\n"
      "connection 0: 0 -> 0 channel 0 tag 0\n"
      "lane 0\n"
      " 0: in -> s0\n"
      " 0: in -> s0\n"
      " 0: scratch -> out final\n"
      "lane 1\n"
      " 0: in -> scratch\n"
      " 0 > 1: r0 -> scratch\n"
      " 0 > 1: r0 -> scratch\n";
  EXPECT_CONTAINS(
      verdictOf({freed}),
      "rank 0 lane 0 step 2 `0: scratch -> out final`: reads scratch chunk 0 piece 0 of rank 0 while "
      "nothing orders that after rank 0 lane 1 step 0 `0: in -> scratch`");
}

TEST(Checker, TakesMessagesForOrder) {
  const std::string message =
      "rank 0 of 1, chunks 1, scratch 1, slots 1\n"
      "connection 0: 0 -> 0 channel 0 tag 0\n"
      "lane 0\n"
      " 0: in -> scratch\n"
      " 0: scratch -> s0\n"
      "lane 1\n"
      " 0: r0 -> scratch\n"
      " 0: scratch -> out final\n";
  for (const Sharing sharing : {Sharing::Copies, Sharing::Offers})
    for (const auto& options : {outOfPlace(sharing), inPlace(sharing)})
      EXPECT_EQ(verdictOf({message}, options), "");
}

// One-shot: everyone sends, then overwrites. In place a reference is still being read then.
TEST(Checker, SeesRacesOfReferencesInPlace) {
  EXPECT_EQ(verdictOf({pair(0, kGood0), pair(1, kGood1)}, outOfPlace(Sharing::References)), "");
  EXPECT_EQ(verdictOf({pair(0, kGood0), pair(1, kGood1)}, inPlace()), "");
  const std::string race = verdictOf({pair(0, kGood0), pair(1, kGood1)}, inPlace(Sharing::References));
  EXPECT_CONTAINS(race, "in place, references");
  EXPECT_CONTAINS(race, "nothing orders that after");
  const std::string header = "chunks 1, scratch 0, slots 1, copy in place";
  EXPECT_EQ(verdictOf({pair(0, kGood0, header), pair(1, kGood1, header)}, inPlace(Sharing::References)), "");
}

TEST(Checker, WantsReferencesToStayWhatTheyWere) {
  const std::string text =
      verdictOf({pair(0, "lane 0\n 0: in -> out, s0\n"), pair(1, "lane 0\n 0: r0 -> out\n")},
                inPlace(Sharing::References));
  EXPECT_CONTAINS(text, "reads in chunk 0 of rank 0, which was overwritten in place");
}

// Rank 1's destination is offered when its work begins; what it still reads there is not safe.
TEST(Checker, SeesRacesOfOfferedDestinations) {
  const char* const reducer = "lane 0\n 0: in + r1 -> out, s0 final\n";
  const char* const reader = "lane 0\n 0: in -> s1\n 0: r0 -> out\n";
  for (const Sharing sharing : {Sharing::Copies, Sharing::References, Sharing::Offers})
    for (const auto& options : {outOfPlace(sharing), inPlace(sharing)})
      EXPECT_EQ(verdictOf({pair(0, reducer), pair(1, reader)}, options), "");

  // Rank 1 writes `out` itself before the sender's data arrives: as a copy it comes second, as an offer it
  // may come first.
  const char* const eager = "lane 0\n 0: in -> s1\n 0: in -> out\n 0: r0 -> out\n";
  EXPECT_EQ(verdictOf({pair(0, reducer), pair(1, eager)}, outOfPlace(Sharing::References)), "");
  const std::string race = verdictOf({pair(0, reducer), pair(1, eager)}, outOfPlace(Sharing::Offers));
  EXPECT_CONTAINS(race, "out of place, offers");
  EXPECT_CONTAINS(race, "nothing orders that after");
}

TEST(Checker, RefusesWhatIsTooLargeToCheck) {
  const std::string huge =
      "rank 0 of 1, chunks 60000000, scratch 60000000, slots 1000\nlane 0\n 0: in -> out\n";
  EXPECT_EQ(verdictOf({huge}), "out of place, copies, 1000 slots: the collective is too large to check");
}

}  // namespace
}  // namespace topoccl
