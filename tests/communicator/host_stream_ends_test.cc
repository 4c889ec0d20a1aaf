// What ends calls on host streams: destroy, finalize, abort, failures; and the streams themselves.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>

#include "communicator/ranks.h"
#include "communicator/streams.h"

namespace topoccl::test {
namespace {

TEST(HostStreamEnds, DestroyAndFinalizeWaitForWhatWasIssued) {
  for (const bool finalizes : {false, true}) {
    const ncclUniqueId id = newId();
    onThreads(2, [&](int rank) {
      ncclComm_t comm = nullptr;
      ASSERT_EQ(ncclCommInitRank(&comm, 2, id, rank), ncclSuccess);
      const Stream stream;
      Words words(200'000, 1);
      if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      for (int call = 0; call < 3; ++call) EXPECT_EQ(sum(words, comm, stream), ncclSuccess);
      if (finalizes) {
        EXPECT_EQ(ncclCommFinalize(comm), ncclSuccess) << lastError();
        EXPECT_EQ(words, Words(words.size(), 8));
      }
      EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
      EXPECT_EQ(words, Words(words.size(), 8));
      EXPECT_EQ(stream.query(), ncclSuccess);
    });
  }
}

TEST(HostStreamEnds, ADestroyedStreamRunsWhatWasIssued) {
  const Comms comms(2);
  Words a(10, 1), b(10, 1);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(topocclStreamCreate(&stream), ncclSuccess);
  EXPECT_EQ(sum(a, comms[0], stream), ncclSuccess);
  EXPECT_EQ(topocclStreamDestroy(stream), ncclSuccess);
  EXPECT_EQ(topocclStreamQuery(stream), ncclInvalidArgument);
  EXPECT_EQ(sum(b, comms[1], nullptr), ncclSuccess);
  EXPECT_EQ(ncclCommFinalize(comms[0]), ncclSuccess);
  EXPECT_EQ(a, Words(10, 2));
}

// Abort ends a call that runs, drops those behind it, and needs nobody's help: not that of the stream either,
// which another communicator holds up.
TEST(HostStreamEnds, AbortEndsOnlyItsOwnCommunicatorsCalls) {
  Comms x(2), y(2);
  const Stream stream, other;
  Words a(10, 1), b(10, 1), c(10, 1), d(10, 1);
  EXPECT_EQ(sum(a, x[0], stream), ncclSuccess);  // waits for x's rank 1
  EXPECT_EQ(sum(b, y[0], stream), ncclSuccess);  // behind it
  EXPECT_EQ(sum(b, y[0], other), ncclSuccess);   // behind that
  EXPECT_EQ(ncclCommAbort(y.release(0)), ncclSuccess);
  EXPECT_EQ(other.synchronize(), ncclInvalidUsage);
  EXPECT_NE(lastError().find("the communicator was aborted"), std::string::npos) << lastError();
  EXPECT_EQ(other.synchronize(), ncclSuccess);  // told once
  EXPECT_EQ(stream.query(), ncclInProgress);
  EXPECT_EQ(sum(c, x[1], nullptr), ncclSuccess) << lastError();
  EXPECT_EQ(stream.synchronize(), ncclInvalidUsage);  // y's call on it
  EXPECT_EQ(a, Words(10, 2));
  EXPECT_EQ(b, Words(10, 1));
  EXPECT_EQ(sum(d, y[1], nullptr), ncclRemoteError);
  EXPECT_EQ(ncclCommAbort(y.release(1)), ncclSuccess);
}

// A caller that waits for its turn is freed too.
TEST(HostStreamEnds, AbortFreesACallerThatWaitsForItsTurn) {
  Comms x(2), y(2);
  const Stream stream;
  Words a(10, 1), b(10, 1), c(10, 1);
  EXPECT_EQ(sum(a, x[0], stream), ncclSuccess);
  EXPECT_EQ(sum(b, y[0], stream), ncclSuccess);
  std::thread caller([&] { EXPECT_EQ(sum(c, y[0], nullptr), ncclInvalidUsage); });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(ncclCommAbort(y[0]), ncclSuccess);
  caller.join();
  y.release(0);
  EXPECT_EQ(ncclCommAbort(x.release(0)), ncclSuccess);
  EXPECT_EQ(stream.synchronize(), ncclInvalidUsage);
  for (Comms* comms : {&x, &y}) EXPECT_EQ(ncclCommAbort(comms->release(1)), ncclSuccess);
}

TEST(HostStreamEnds, AnAbortFreesADestroyThatWaits) {
  Comms x(2);
  const Stream stream;
  Words a(10, 1), b(10, 1);
  EXPECT_EQ(sum(a, x[0], stream), ncclSuccess);
  EXPECT_EQ(sum(b, x[0], stream), ncclSuccess);
  ncclComm_t comm = x.release(0);
  std::thread destroys([&] { EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess); });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(ncclCommAbort(comm), ncclSuccess) << lastError();
  destroys.join();
  EXPECT_EQ(stream.synchronize(), ncclInvalidUsage);
  EXPECT_EQ(ncclCommAbort(x.release(1)), ncclSuccess);
}

TEST(HostStreamEnds, AFailureIsTheCommunicatorsErrorAndTheStreams) {
  Comms comms(2);
  const Stream streams[2];
  Words a(10, 1), b(20, 1);
  EXPECT_EQ(sum(a, comms[0], streams[0]), ncclSuccess);
  EXPECT_EQ(sum(b, comms[1], streams[1]), ncclSuccess);  // another count
  std::string texts;
  for (const Stream& stream : streams) {
    EXPECT_NE(stream.synchronize(), ncclSuccess);
    texts += lastError();
  }
  EXPECT_NE(texts.find("all_reduce #1 uint32 x 10 sum"), std::string::npos) << texts;
  EXPECT_NE(texts.find("all_reduce #1 uint32 x 20 sum"), std::string::npos) << texts;
  for (int rank = 0; rank < 2; ++rank) {
    ncclResult_t state = ncclSuccess;
    EXPECT_EQ(ncclCommGetAsyncError(comms[rank], &state), ncclSuccess);
    EXPECT_TRUE(state == ncclInvalidUsage || state == ncclRemoteError) << state;
    EXPECT_EQ(sum(a, comms[rank], streams[rank]), state) << lastError();
    EXPECT_EQ(ncclCommAbort(comms.release(rank)), ncclSuccess);
  }
}

// The group has its calls' streams.
TEST(HostStreamEnds, AStreamDestroyedInsideAGroupRunsTheGroupsCalls) {
  const Comms comms(2);
  Words a(10, 1), b(10, 1);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(topocclStreamCreate(&stream), ncclSuccess);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(sum(a, comms[0], stream), ncclSuccess);
  EXPECT_EQ(topocclStreamDestroy(stream), ncclSuccess);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  EXPECT_EQ(sum(b, comms[1], nullptr), ncclSuccess);
  EXPECT_EQ(ncclCommFinalize(comms[0]), ncclSuccess);
  EXPECT_EQ(a, Words(10, 2));
}

// One thread issues on streams that another destroys.
TEST(HostStreamEnds, StreamsAreDestroyedWhileOthersIssueOnThem) {
  const Comms comms(1);
  Words words(10, 1);
  for (int round = 0; round < 500; ++round) {
    cudaStream_t stream = nullptr;
    ASSERT_EQ(topocclStreamCreate(&stream), ncclSuccess);
    std::thread destroys([&] { EXPECT_EQ(topocclStreamDestroy(stream), ncclSuccess); });
    const ncclResult_t result = sum(words, comms[0], stream);
    EXPECT_TRUE(result == ncclSuccess || result == ncclInvalidArgument) << lastError();
    destroys.join();
  }
  EXPECT_EQ(ncclCommFinalize(comms[0]), ncclSuccess) << lastError();
}

// What is issued later and dropped counts for nothing.
TEST(HostStreamEnds, SynchronizeWaitsForAllThatWasIssuedBefore) {
  Comms x(2), y(2), z(2);
  const Stream stream;
  Words a(10, 1), b(10, 1), c(10, 1);
  EXPECT_EQ(sum(a, x[0], stream), ncclSuccess);
  EXPECT_EQ(sum(b, y[0], stream), ncclSuccess);
  std::atomic<bool> returned{false};
  std::thread waits([&] {
    static_cast<void>(stream.synchronize());
    returned = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(sum(c, z[0], stream), ncclSuccess);
  EXPECT_EQ(ncclCommAbort(z.release(0)), ncclSuccess);
  Words d(10, 1), e(10, 1);
  EXPECT_EQ(sum(d, x[1], nullptr), ncclSuccess);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_FALSE(returned);
  EXPECT_EQ(sum(e, y[1], nullptr), ncclSuccess);
  waits.join();
  EXPECT_EQ(b, Words(10, 2));
  EXPECT_EQ(ncclCommAbort(z.release(1)), ncclSuccess);
}

// Once, to all who wait; also where the call's caller waits for its turn.
TEST(HostStreamEnds, AnErrorIsToldToAllWhoWaitAndThenForgotten) {
  for (int round = 0; round < 20; ++round) {
    Comms x(2), y(2);
    const Stream stream, held;
    Words a(10, 1), b(10, 1), c(10, 1), d(10, 1);
    EXPECT_EQ(sum(a, x[0], held), ncclSuccess);
    EXPECT_EQ(sum(b, y[0], held), ncclSuccess);
    std::thread caller([&] {
      EXPECT_EQ(ncclGroupStart(), ncclSuccess);
      EXPECT_EQ(sum(c, y[0], nullptr), ncclSuccess);
      EXPECT_EQ(sum(d, y[0], stream), ncclSuccess);
      EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    });
    while (stream.query() == ncclSuccess) std::this_thread::yield();  // until the group has been issued
    constexpr int kWaiting = 3;
    ncclResult_t told[kWaiting] = {};
    std::vector<std::thread> waiting;
    for (ncclResult_t& result : told) waiting.emplace_back([&] { result = stream.synchronize(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(ncclCommAbort(y[0]), ncclSuccess);
    y.release(0);
    caller.join();
    for (std::thread& thread : waiting) thread.join();
    for (const ncclResult_t result : told) EXPECT_EQ(result, ncclInvalidUsage);
    EXPECT_EQ(stream.synchronize(), ncclSuccess) << lastError();
    EXPECT_EQ(ncclCommAbort(x.release(0)), ncclSuccess);
    for (Comms* comms : {&x, &y}) EXPECT_EQ(ncclCommAbort(comms->release(1)), ncclSuccess);
  }
}

// A failure on a stream ends what its rank's caller waits for, and the other ranks' too.
TEST(HostStreamEnds, AFailureOnAStreamEndsASplit) {
  constexpr int kRanks = 3;
  const ncclUniqueId id = newId();
  std::atomic<int> done{0};
  onThreads(kRanks, [&](int rank) {
    ncclComm_t comm = nullptr, part = nullptr;
    ASSERT_EQ(ncclCommInitRank(&comm, kRanks, id, rank), ncclSuccess);
    const Stream stream;
    Words words(20, 1);
    if (rank == 0) {
      EXPECT_EQ(ncclSend(words.data(), 10, ncclUint32, 1, comm, stream), ncclSuccess);
    }
    if (rank == 1) {
      EXPECT_EQ(ncclRecv(words.data(), 20, ncclUint32, 0, comm, stream), ncclSuccess);
    }
    if (rank < 2) {
      EXPECT_NE(ncclCommSplit(comm, 0, 0, &part, nullptr), ncclSuccess);
      const ncclResult_t result = stream.synchronize();  // a small send is on its way at once
      EXPECT_TRUE(rank == 0 || result == ncclInvalidUsage) << result << lastError();
      ++done;
    } else {  // comes to the split when the others have given it up
      for (int i = 0; i < 10'000 && done < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(done, 2);
      EXPECT_EQ(ncclCommSplit(comm, 0, 0, &part, nullptr), ncclRemoteError);
    }
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  });
}

// Two threads learn of it at once: neither takes it for a success.
TEST(HostStreamEnds, APeersDeathDuringASplitAndACallIsNoSuccess) {
  constexpr int kRanks = 3;
  for (int round = 0; round < 5; ++round) {
    const ncclUniqueId id = newId();
    onProcesses(
        kRanks,
        [&](int rank) {
          ncclComm_t comm = nullptr, part = nullptr;
          EXPECT_EQ(ncclCommInitRank(&comm, kRanks, id, rank), ncclSuccess);
          if (rank == kRanks - 1) {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            ::raise(SIGKILL);
          }
          const Stream stream;
          Words words(10, 1);
          EXPECT_EQ(sum(words, comm, stream), ncclSuccess);
          EXPECT_EQ(ncclCommSplit(comm, 0, 0, &part, nullptr), ncclRemoteError) << lastError();
          EXPECT_EQ(stream.synchronize(), ncclRemoteError) << lastError();
          EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
          return 0;
        },
        [](int rank, int status) { return rank == kRanks - 1 ? WIFSIGNALED(status) : status == 0; });
  }
}

// That of the call that ran, not those of the calls behind it that were dropped at once.
TEST(HostStreamEnds, TheFirstFailureIsTold) {
  Comms comms(2);
  const Stream stream;
  Words words(10, 1);
  for (int call = 0; call < 3; ++call) EXPECT_EQ(sum(words, comms[0], stream), ncclSuccess);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(ncclCommAbort(comms.release(0)), ncclSuccess);
  EXPECT_EQ(stream.synchronize(), ncclInvalidUsage);
  EXPECT_NE(lastError().find("aborted during all_reduce #1"), std::string::npos) << lastError();
  EXPECT_EQ(ncclCommAbort(comms.release(1)), ncclSuccess);
}

// However much else of its task moves on.
TEST(HostStreamEnds, AbortEndsATaskThatIsBusy) {
  Comms waits(2), busy(1);
  const Stream stream;
  std::vector<float> in(1 << 20, 1), out(in.size(), 0);
  float small = 1;
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(&small, &small, 1, ncclFloat, ncclSum, waits[0], stream), ncclSuccess);
  constexpr int kCalls = 20'000;  // many seconds
  for (int call = 0; call < kCalls; ++call) {
    ASSERT_EQ(ncclAllReduce(in.data(), out.data(), in.size(), ncclFloat, ncclSum, busy[0], stream),
              ncclSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << lastError();
  EXPECT_EQ(ncclCommAbort(waits.release(0)), ncclSuccess);
  EXPECT_EQ(stream.query(), ncclInProgress);  // the others go on
  EXPECT_EQ(ncclCommAbort(busy.release(0)), ncclSuccess);
  EXPECT_EQ(stream.synchronize(), ncclInvalidUsage);
  EXPECT_EQ(ncclCommAbort(waits.release(1)), ncclSuccess);
}

// A handler of faults may be what makes a buffer readable.
TEST(HostStreamEnds, FaultsReachTheProgramsHandler) {
  static unsigned char* page;
  const auto size = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  onProcesses(1, [&](int) {
    page = static_cast<unsigned char*>(::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    struct sigaction action {};
    action.sa_handler = [](int) {
      ::mprotect(page, static_cast<size_t>(::sysconf(_SC_PAGESIZE)), PROT_READ | PROT_WRITE);
    };
    EXPECT_EQ(::sigaction(SIGSEGV, &action, nullptr), 0);
    const Comms comms(1);
    const Stream stream;
    Words out(10, 7);
    EXPECT_EQ(ncclAllReduce(page, out.data(), 10, ncclUint32, ncclSum, comms[0], stream), ncclSuccess);
    EXPECT_EQ(stream.synchronize(), ncclSuccess) << lastError();
    EXPECT_EQ(out, Words(10, 0));
    return 0;
  });
}

// Its thread is in the parent.
TEST(HostStreamEnds, AForkedProcessIsRefusedItsParentsStream) {
  const Stream stream;
  onProcesses(1, [&](int) {
    const Stream own;
    EXPECT_EQ(own.synchronize(), ncclSuccess) << lastError();
    for (const auto function : {topocclStreamSynchronize, topocclStreamQuery}) {
      EXPECT_EQ(function(stream), ncclInvalidUsage);
      EXPECT_NE(lastError().find("which forked this one"), std::string::npos) << lastError();
    }
    return 0;
  });
}

}  // namespace
}  // namespace topoccl::test
