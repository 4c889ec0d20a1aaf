// The driver: queues of works, and every way in which a work can end.
#include "executor/driver.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "base/error.h"
#include "support/int32_buffers.h"
#include "support/node_ranks.h"
#include "support/pair.h"

namespace topoccl::test {
namespace {

// A work of which a test says what it does, and which counts what it is asked.
class ScriptedWork : public Work {
 public:
  std::function<BoundSchedule*(int asked)> onOpen = [](int) { return nullptr; };
  std::function<bool(const BoundSchedule*)> onGiveUp = [](const BoundSchedule*) { return false; };
  int opened = 0, failures = 0, gaveUp = 0;
  const BoundSchedule* failedOn = nullptr;
  bool stalledWhenAsked = false;

  BoundSchedule* open() override { return onOpen(++opened); }
  void failed(const BoundSchedule& running) override {
    ++failures;
    failedOn = &running;
  }
  bool giveUp(const BoundSchedule* running, bool stalled) override {
    ++gaveUp;
    stalledWhenAsked = stalled;
    return onGiveUp(running);
  }
};

// A rank on its own: in -> out.
class Alone {
 public:
  Alone() {
    ScheduleBuilder builder(1, 0, 1);
    builder.step({kIn}, {kOut}, 0);
    bound_ = std::make_unique<BoundSchedule>(builder.take(), std::vector<Endpoint*>());
    work.onOpen = [this](int) {
      work.context.in = in.data();
      work.context.out = out.data();
      work.context.map = makeChunkMap(in.size(), 1, 1, 64, 1);
      return bound_.get();
    };
  }
  bool done() const { return in == out; }

  std::vector<unsigned char> in = std::vector<unsigned char>(300, 7),
                             out = std::vector<unsigned char>(300, 0);
  ScriptedWork work;

 private:
  std::unique_ptr<BoundSchedule> bound_;
};

// Both works of a pair: the sender's and the receiver's.
class PairWorks {
 public:
  explicit PairWorks(uint64_t receiversCall = 5) : pair(PairPlan{}) {
    sender.context = pair.context(in, ignored, true, UINT64_MAX);
    receiver.context = pair.context(ignored, out, false, UINT64_MAX);
    receiver.context.call = receiversCall;
    sender.onOpen = [this](int) { return pair.sender.get(); };
    receiver.onOpen = [this](int) { return pair.receiver.get(); };
  }

  Pair pair;
  std::vector<unsigned char> in = std::vector<unsigned char>(500, 9),
                             ignored = std::vector<unsigned char>(500), out = std::vector<unsigned char>(500);
  ScriptedWork sender, receiver;
};

// Drives queues with a doorbell that nobody rings.
void driveAll(std::span<WorkQueue> queues) {
  Doorbell bell{};
  Doorbell* bells[] = {&bell};
  Waiter waiter;
  waiter.reset({}, bells, 1);
  drive(queues, waiter);
  EXPECT_EQ(bell.sleeping, 0U) << "still announced as asleep";
}

TEST(Driver, HasNothingToDoForEmptyQueues) {
  driveAll({});
  WorkQueue queues[2];
  driveAll(queues);
  EXPECT_FALSE(queues[0].failed);
}

// However busy the others are.
TEST(Driver, AsksAWaitingWorkWhileOthersMove) {
  ScriptedWork waiting;  // is never open
  Alone busy;
  const std::vector<Work*> works(10'000'000, &busy.work);  // some seconds
  int openedWhenAsked = 0;
  waiting.onGiveUp = [&](const BoundSchedule*) {
    openedWhenAsked = busy.work.opened;
    return true;
  };
  bool askedBusy = false;
  busy.work.onGiveUp = [&](const BoundSchedule*) { return askedBusy = true; };
  Work* const lonely[] = {&waiting};
  WorkQueue queues[] = {{.works = lonely}, {.works = works}};
  driveAll(queues);
  EXPECT_GT(openedWhenAsked, 0);
  EXPECT_FALSE(waiting.stalledWhenAsked);
  EXPECT_TRUE(askedBusy);  // it too
  EXPECT_LT(busy.work.opened, 10'000'000);
}

TEST(Driver, RunsTheWorksOfAQueueInOrder) {
  Alone first, second, third;
  std::vector<int> order;
  const auto note = [&](Alone& alone, int place) {
    alone.work.onOpen = [&, place, open = alone.work.onOpen](int asked) {
      order.push_back(place);
      return open(asked);
    };
  };
  note(first, 1);
  note(second, 2);
  note(third, 3);
  Work* const works[] = {&first.work, &second.work, &third.work};
  WorkQueue queue{.works = works};
  driveAll({&queue, 1});
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_TRUE(first.done() && second.done() && third.done());
  EXPECT_FALSE(queue.failed);
}

TEST(Driver, AsksAgainForConnectionsThatAreNotThereYet) {
  Alone late, other;
  late.work.onOpen = [open = late.work.onOpen](int asked) { return asked < 30 ? nullptr : open(asked); };
  Work* const lateWorks[] = {&late.work};
  Work* const otherWorks[] = {&other.work};
  WorkQueue queues[2];
  queues[0].works = lateWorks;
  queues[1].works = otherWorks;
  driveAll(queues);
  EXPECT_TRUE(late.done());
  EXPECT_TRUE(other.done());
  EXPECT_EQ(late.work.opened, 30);
  EXPECT_GT(late.work.gaveUp, 0) << "it slept without a look at aborts";
}

TEST(Driver, AThrowingOpenEndsItsQueueAndPassesThroughAfterTheOthers) {
  Alone bad, never, other, another;
  bad.work.onOpen = [](int) -> BoundSchedule* { throw Error(Code::SystemError, "no room"); };
  Work* const badWorks[] = {&bad.work, &never.work};
  Work* const otherWorks[] = {&other.work, &another.work};
  WorkQueue queues[2];
  queues[0].works = badWorks;
  queues[1].works = otherWorks;
  try {
    driveAll(queues);
    FAIL() << "the error got lost";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "no room");
  }
  EXPECT_TRUE(queues[0].failed);
  EXPECT_EQ(bad.work.opened, 1);
  EXPECT_EQ(never.work.opened, 0);
  EXPECT_FALSE(queues[1].failed);
  EXPECT_TRUE(other.done() && another.done());
}

TEST(Driver, OfSeveralErrorsTheFirstPassesThrough) {
  ScriptedWork first, second;
  first.onOpen = [](int) -> BoundSchedule* { throw Error(Code::SystemError, "first"); };
  second.onOpen = [](int asked) -> BoundSchedule* {
    if (asked < 5) return nullptr;
    throw Error(Code::SystemError, "second");
  };
  Work* const firstWorks[] = {&first};
  Work* const secondWorks[] = {&second};
  WorkQueue queues[2];
  queues[0].works = secondWorks;
  queues[1].works = firstWorks;
  try {
    driveAll(queues);
    FAIL() << "the errors got lost";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
  EXPECT_TRUE(queues[0].failed && queues[1].failed);
}

TEST(Driver, ARefusedWorkEndsItsQueueOnly) {
  PairWorks pair(6);  // the receiver is in another call
  Alone never, after;
  Work* const sending[] = {&pair.sender, &after.work};
  Work* const receiving[] = {&pair.receiver, &never.work};
  WorkQueue queues[2];
  queues[0].works = receiving;
  queues[1].works = sending;
  driveAll(queues);
  EXPECT_TRUE(queues[0].failed);
  EXPECT_EQ(pair.receiver.failures, 1);
  EXPECT_EQ(pair.receiver.failedOn, pair.pair.receiver.get());
  EXPECT_EQ(pair.receiver.failedOn->failure().found.call, 5U);
  EXPECT_EQ(pair.receiver.failedOn->call(), 6U);
  EXPECT_EQ(never.work.opened, 0);
  EXPECT_FALSE(queues[1].failed);
  EXPECT_TRUE(after.done());
}

// The sender's data never comes; the receiver says what it waits for when asked.
TEST(Driver, AWaitingWorkIsAskedWhetherItGivesUp) {
  PairWorks pair;
  Alone never, other;
  BoundSchedule::Wait wait;
  pair.receiver.onGiveUp = [&](const BoundSchedule* running) {
    wait = running->waiting();
    return pair.receiver.gaveUp == 3;
  };
  Work* const receiving[] = {&pair.receiver, &never.work};
  Work* const others[] = {&other.work};
  WorkQueue queues[2];
  queues[0].works = receiving;
  queues[1].works = others;
  driveAll(queues);
  EXPECT_TRUE(queues[0].failed);
  EXPECT_EQ(pair.receiver.gaveUp, 3);
  EXPECT_EQ(pair.receiver.failures, 0);
  EXPECT_EQ(never.work.opened, 0);
  EXPECT_EQ(other.work.gaveUp, 0) << "asked although it did not wait";
  EXPECT_TRUE(other.done());
  EXPECT_EQ(wait.lane, 0U);
  EXPECT_EQ(wait.step, 0U);
  EXPECT_EQ(wait.place, Place::Receive);
  EXPECT_EQ(wait.connection, 0U);
}

TEST(Driver, AnAbortReachesAWorkWhosePeerNeverComes) {
  ScriptedWork lonely;
  uint32_t abort = 0, asked = 0;
  lonely.onGiveUp = [&](const BoundSchedule* running) {
    EXPECT_EQ(running, nullptr);
    fetchAdd(&asked, 1U);
    return loadAcquire(&abort) != 0;
  };
  Work* const works[] = {&lonely};
  WorkQueue queue{.works = works};
  std::thread driver([&] { driveAll({&queue, 1}); });
  while (loadAcquire(&asked) < 2) std::this_thread::yield();  // it sleeps by now
  storeRelease(&abort, 1U);
  driver.join();
  EXPECT_TRUE(queue.failed);
  EXPECT_GT(lonely.opened, 2);
}

TEST(Driver, AReferencedBufferHoldsItsWorkUntilItIsRead) {
  PairWorks pair;
  pair.sender.context.referenceBytes = 1;
  BoundSchedule::Wait wait;
  pair.sender.onGiveUp = [&](const BoundSchedule* running) {
    wait = running->waiting();
    return true;
  };
  Work* const works[] = {&pair.sender};
  WorkQueue queue{.works = works};
  driveAll({&queue, 1});
  EXPECT_TRUE(queue.failed);
  EXPECT_EQ(wait.lane, UINT32_MAX);
  EXPECT_EQ(wait.place, Place::Send);
}

// Works of different algorithms, protocols and sizes back to back, with no pause in between for ranks that
// lag behind.
TEST(Driver, RunsDifferentWorksBackToBack) {
  constexpr int kRanks = 3;
  std::vector<Request> requests;
  for (const Algorithm algorithm : {Algorithm::Ring, Algorithm::MeshTwoShot, Algorithm::Tree,
                                    Algorithm::HalvingDoubling, Algorithm::MeshOneShot})
    for (const uint64_t count : {uint64_t{3}, uint64_t{20'011}, uint64_t{0}, uint64_t{777}}) {
      Request request;
      request.algorithm = algorithm;
      request.protocol = count % 2 == 0 ? Protocol::Bulk : Protocol::Packet;
      request.type = DataType::Int32;
      request.count = count;
      requests.push_back(request);
    }
  std::vector<Request> doubled = requests;
  doubled.insert(doubled.end(), requests.rbegin(), requests.rend());

  for (const Transport transport : {Transport::InProcess, Transport::Shm}) {
    NodeRanks node(kRanks, transport);
    std::vector<Int32Buffers> buffers;
    for (size_t i = 0; i < doubled.size(); ++i)
      buffers.emplace_back(kRanks, doubled[i].count, static_cast<int>(i), i % 3 == 0);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank)
      threads.emplace_back([&, rank] {
        const auto r = static_cast<size_t>(rank);
        std::vector<std::unique_ptr<NodeRanks::RankWork>> works;
        std::vector<Work*> queue;
        for (size_t i = 0; i < doubled.size(); ++i) {
          works.push_back(node.makeWork(doubled[i], rank, buffers[i].ins[r], buffers[i].outs[r], i));
          queue.push_back(works.back().get());
        }
        node.driveRank(rank, queue);
        for (const auto& work : works) EXPECT_EQ(work->end, End::Done);
      });
    for (std::thread& thread : threads) thread.join();
    for (Int32Buffers& each : buffers)
      for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(each.flawOf(rank), "");
  }
}

}  // namespace
}  // namespace topoccl::test
