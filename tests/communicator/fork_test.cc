// A process that has communicators forks: its child is refused what is not its own, may have its own, and
// does no harm to the parent, however it ends.
#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdlib>

#include "communicator/functions.h"
#include "communicator/non_blocking.h"
#include "communicator/ranks.h"
#include "communicator/streams.h"
#include "support/child.h"
#include "support/sanitized.h"
#include "topoccl.h"

namespace topoccl::test {
namespace {

// In a child: the call is refused, with a text that says why and what to do.
void expectRefused(const char* function, ncclResult_t result, const char* advice) {
  EXPECT_EQ(result, ncclInvalidUsage) << function;
  const std::string text = lastError();
  for (const std::string& part : {std::string(function) + ": ", std::string("which forked this one"),
                                  std::to_string(::getppid()), std::string(advice)})
    EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
}

// Every function that takes a communicator or a stream.
void expectEverythingRefused(ncclComm_t comm, cudaStream_t stream) {
  const char* const comms = "ncclCommInitRank";
  const char* const streams = "topocclStreamCreate";
  std::vector<uint32_t> in(10, 1), out(10);
  for (const Function& function : kFunctions)
    expectRefused(function.name,
                  function.call({in.data(), out.data(), 1, ncclUint32, ncclSum, 0, comm, stream}), comms);
  int number = 0;
  void* handle = nullptr;
  ncclRedOp_t op = ncclSum;
  ncclResult_t error = ncclSuccess;
  ncclComm_t part = nullptr;
  topocclPlan_t plan;
  const size_t one[] = {1, 1}, none[] = {0, 0};
  expectRefused("topocclAllToAllV",
                topocclAllToAllV(in.data(), one, none, out.data(), one, none, ncclUint32, comm, stream),
                comms);
  expectRefused("topocclBarrier", topocclBarrier(comm, stream), comms);
  expectRefused("topocclCommExplain", topocclCommExplain(comm, "all_reduce", 1, ncclUint32, &plan), comms);
  expectRefused("ncclCommSplit", ncclCommSplit(comm, 0, 0, &part, nullptr), comms);
  expectRefused("ncclCommRegister", ncclCommRegister(comm, in.data(), 4, &handle), comms);
  expectRefused("ncclCommDeregister", ncclCommDeregister(comm, in.data()), comms);
  expectRefused("ncclRedOpCreatePreMulSum",
                ncclRedOpCreatePreMulSum(&op, in.data(), ncclUint32, ncclScalarHostImmediate, comm), comms);
  expectRefused("ncclRedOpDestroy", ncclRedOpDestroy(ncclSum, comm), comms);
  expectRefused("ncclCommCount", ncclCommCount(comm, &number), comms);
  expectRefused("ncclCommUserRank", ncclCommUserRank(comm, &number), comms);
  expectRefused("ncclCommCuDevice", ncclCommCuDevice(comm, &number), comms);
  expectRefused("ncclCommGetAsyncError", ncclCommGetAsyncError(comm, &error), comms);
  expectRefused("ncclCommFinalize", ncclCommFinalize(comm), comms);
  expectRefused("ncclCommAbort", ncclCommAbort(comm), comms);
  expectRefused("ncclCommDestroy", ncclCommDestroy(comm), comms);
  expectRefused("topocclStreamSynchronize", topocclStreamSynchronize(stream), streams);
  expectRefused("topocclStreamQuery", topocclStreamQuery(stream), streams);
  expectRefused("topocclStreamDestroy", topocclStreamDestroy(stream), streams);
}

// A child's own communicator, stream and memory.
void expectOwnWork() {
  ncclComm_t comms[2] = {};
  ASSERT_EQ(ncclCommInitAll(comms, 2, nullptr), ncclSuccess) << lastError();
  onThreads(2, [&](int rank) { expectSum(comms[rank], 2, rank, 1000); });
  for (ncclComm_t comm : comms) ASSERT_EQ(ncclCommDestroy(comm), ncclSuccess) << lastError();
  const Comm alone(newId(), 1, 0);
  const Stream stream;
  Words words(10, 3);
  EXPECT_EQ(sum(words, alone, stream), ncclSuccess) << lastError();
  EXPECT_EQ(stream.synchronize(), ncclSuccess) << lastError();
  void* memory = nullptr;
  EXPECT_EQ(ncclMemAlloc(&memory, 100), ncclSuccess);
  EXPECT_EQ(ncclMemFree(memory), ncclSuccess);
}

int failures() {
  return testing::Test::HasFailure() ? 1 : 0;
}

class Fork : public testing::Test {
 protected:
  void SetUp() override {
    const ncclUniqueId id = newId();
    onThreads(2, [&](int rank) { ASSERT_EQ(ncclCommInitRank(&comms_[rank], 2, id, rank), ncclSuccess); });
    work();
    letRootsFallAsleep();
  }
  void TearDown() override {
    work();
    for (ncclComm_t comm : comms_) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess) << lastError();
  }

  // The parent's, on streams and without, which goes on whatever children do.
  void work() {
    onThreads(2, [&](int rank) {
      expectSum(comms_[rank], 2, rank, 1000);
      Words words(100, 1);
      EXPECT_EQ(sum(words, comms_[rank], streams_[rank]), ncclSuccess) << lastError();
      EXPECT_EQ(streams_[rank].synchronize(), ncclSuccess) << lastError();
      EXPECT_EQ(words, Words(100, 2));
      ncclResult_t error = ncclInternalError;
      EXPECT_EQ(ncclCommGetAsyncError(comms_[rank], &error), ncclSuccess);
      EXPECT_EQ(error, ncclSuccess) << lastError();
    });
  }

  ncclComm_t comms_[2] = {};
  Stream streams_[2];
};

TEST_F(Fork, ChildIsRefusedItsParentsCommunicatorsAndStreams) {
  EXPECT_EQ(runChild([&] {
              expectEverythingRefused(comms_[0], streams_[1]);
              return failures();
            }),
            "");
}

TEST_F(Fork, ChildMayHaveCommunicatorsOfItsOwn) {
  EXPECT_EQ(runChild([&] {
              expectOwnWork();
              expectRefused("ncclCommDestroy", ncclCommDestroy(comms_[0]), "fork");
              return failures();
            }),
            "");
}

// Exit runs destructors and handlers; a program that cleans up finds its communicators refused.
TEST_F(Fork, ChildThatExitsSaysNoGoodbyeForItsParent) {
  static ncclComm_t inherited = nullptr;
  inherited = comms_[0];
  const pid_t child = startChild([] {
    std::atexit([] { ::_exit(ncclCommDestroy(inherited) == ncclInvalidUsage ? 0 : 1); });
    std::exit(2);
    return 3;
  });
  EXPECT_EQ(endOf(child), "");
}

TEST_F(Fork, ChildThatStartsAProgramInheritsNothing) {
  EXPECT_EQ(
      runChild([] {
        const char* const looks =
            "for each in /proc/self/fd/*; do case ${each##*/} in [012]) ;; *) readlink $each ;; esac; done"
            " | grep -E 'socket:|memfd:|eventpoll' && exit 1; exit 0";
        ::execl("/bin/sh", "sh", "-c", looks, nullptr);
        return 1;
      }),
      "");
}

// A child that lives on keeps no connection of its parent open: else nobody would notice the parent's end.
TEST_F(Fork, ChildHasNoneOfItsParentsDescriptors) {
  std::vector<int> connections;
  for (int number = 3; number < 256; ++number) {
    struct stat status {};
    if (::fstat(number, &status) == 0 && S_ISSOCK(status.st_mode)) connections.push_back(number);
  }
  ASSERT_GE(connections.size(), 3U) << "of two ranks and the root";
  EXPECT_EQ(runChild([&] {
              for (const int number : connections) EXPECT_EQ(::fcntl(number, F_GETFD), -1) << number;
              return failures();
            }),
            "");
}

TEST_F(Fork, ParentsEndIsNoticedWhileAChildLives) {
  const ncclUniqueId id = newId();
  SharedValue<std::atomic<pid_t>> grandchild;
  onProcesses(
      2,
      [&](int rank) {
        const Comm comm(id, 2, rank);
        expectSum(comm, 2, rank, 100);
        if (rank == 0) {
          *grandchild = startChild([] {
            ::pause();
            return 0;
          });
          ::raise(SIGKILL);
        }
        std::vector<float> data(10);
        EXPECT_EQ(ncclAllReduce(data.data(), data.data(), 10, ncclFloat, ncclSum, comm, nullptr),
                  ncclRemoteError);
        EXPECT_NE(lastError().find("rank 0"), std::string::npos) << lastError();
        return 0;
      },
      [](int rank, int status) { return rank == 0 ? WIFSIGNALED(status) : status == 0; });
  ASSERT_GT(*grandchild, 0);
  ::kill(*grandchild, SIGKILL);
}

// Calls that were collected are the parent's; the child's own ones are not added to them.
TEST_F(Fork, ChildBeginsOutsideItsParentsGroup) {
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  Words words(10, 1), other(10, 1);
  EXPECT_EQ(sum(words, comms_[0], streams_[0]), ncclSuccess);
  EXPECT_EQ(sum(other, comms_[1], streams_[1]), ncclSuccess);
  EXPECT_EQ(runChild([&] {
              expectOwnWork();
              EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
              return failures();
            }),
            "");
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << lastError();
  for (const Stream& stream : streams_) EXPECT_EQ(stream.synchronize(), ncclSuccess) << lastError();
  EXPECT_EQ(words, Words(10, 2));
}

// Calls in flight on streams, an init in the background, and a communicator that doesn't block.
TEST_F(Fork, WithWorkInTheBackgroundIsHarmless) {
  ncclConfig_t config = nonBlocking();
  const ncclUniqueId id = newId();
  ncclComm_t pending[2] = {};
  Words words(100, 1), other(100, 1);
  EXPECT_EQ(sum(words, comms_[0], streams_[0]), ncclSuccess);
  EXPECT_EQ(ncclCommInitRankConfig(&pending[0], 2, id, 0, &config), ncclInProgress);
  letRootsFallAsleep();
  EXPECT_EQ(runChild([&] {
              ncclResult_t error = ncclSuccess;
              expectRefused("ncclCommGetAsyncError", ncclCommGetAsyncError(pending[0], &error), "fork");
              expectRefused("ncclCommAbort", ncclCommAbort(pending[0]), "fork");
              expectEverythingRefused(comms_[0], streams_[0]);
              expectOwnWork();
              return failures();
            }),
            "");
  EXPECT_EQ(ncclCommInitRankConfig(&pending[1], 2, id, 1, &config), ncclInProgress);
  EXPECT_EQ(sum(other, comms_[1], streams_[1]), ncclSuccess);
  for (ncclComm_t comm : pending) EXPECT_EQ(awaitState(comm), ncclSuccess) << lastError();
  for (ncclComm_t comm : pending) EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  for (const Stream& stream : streams_) EXPECT_EQ(stream.synchronize(), ncclSuccess) << lastError();
  EXPECT_EQ(words, Words(100, 2));
}

// Other threads use the library all the time, so they hold its locks at some of the forks.
TEST_F(Fork, WhileOtherThreadsAreInTheLibraryLeavesTheChildWhole) {
  if (kSanitized) GTEST_SKIP() << "sanitizers' own locks do not outlive a fork beside other threads";
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  const auto hammer = [&](const std::function<void()>& body) {
    threads.emplace_back([&stop, body] {
      while (!stop) body();
    });
  };
  hammer([] {
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess) << lastError();
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
  hammer([] {
    const Stream stream;
    EXPECT_EQ(stream.synchronize(), ncclSuccess);
    EXPECT_NE(ncclCommDestroy(nullptr), ncclSuccess);
  });
  hammer([] {
    const ncclUniqueId id = newId();
    onThreads(2, [&](int rank) { const Comm comm(id, 2, rank); });
  });
  hammer([&] { work(); });
  const int forks = std::getenv("TOPOCCL_TEST_REDUCED") != nullptr ? 20 : 200;
  for (int i = 0; i < forks && !HasFailure(); ++i)
    EXPECT_EQ(runChild([] {
                expectOwnWork();
                return failures();
              }),
              "")
        << "fork " << i;
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace topoccl::test
