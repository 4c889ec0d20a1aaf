// Host streams: calls that return at once, and the orders they run in.
#include <atomic>
#include <deque>

#include "communicator/movements.h"
#include "communicator/ranks.h"
#include "communicator/streams.h"

namespace topoccl::test {
namespace {

void expectMovements(ncclComm_t comm, int ranks, int rank) {
  const Stream stream;
  std::deque<MovementCall> calls;
  uint32_t seed = 0;
  for (const size_t count : {size_t{0}, size_t{1}, size_t{1000}, size_t{70'001}})
    for (const Movement movement : kMovements)
      for (const bool inPlace : {false, true}) {
        ++seed;
        const int root = hasRoot(movement) ? static_cast<int>(seed) % ranks : -1;
        EXPECT_EQ(calls.emplace_back(movement, comm, ranks, rank, root, count, inPlace, seed).run(stream),
                  ncclSuccess)
            << lastError();
      }
  EXPECT_EQ(stream.synchronize(), ncclSuccess) << lastError();
  EXPECT_EQ(stream.query(), ncclSuccess) << lastError();
  for (const MovementCall& call : calls) EXPECT_EQ(call.flaw(), "");
}

TEST(HostStream, RunsEveryCollectiveOnThreads) {
  for (const int ranks : {1, 2, 3, 5}) {
    const ncclUniqueId id = newId();
    onThreads(ranks, [&](int rank) { expectMovements(Comm(id, ranks, rank), ranks, rank); });
  }
}

TEST(HostStream, RunsEveryCollectiveOnProcesses) {
  for (const int ranks : {2, 3}) {
    const ncclUniqueId id = newId();
    onProcesses(ranks, [&](int rank) {
      expectMovements(Comm(id, ranks, rank), ranks, rank);
      return 0;
    });
  }
}

TEST(HostStream, ACallReturnsBeforeItsPeersCome) {
  const Comms comms(2);
  const Stream first, second;
  Words a(1000, 1), b(1000, 2);
  EXPECT_EQ(first.query(), ncclSuccess);
  EXPECT_EQ(sum(a, comms[0], first), ncclSuccess) << lastError();
  EXPECT_EQ(first.query(), ncclInProgress);
  EXPECT_TRUE(stays(a, 1));
  EXPECT_EQ(sum(b, comms[1], second), ncclSuccess) << lastError();
  EXPECT_EQ(first.synchronize(), ncclSuccess) << lastError();
  EXPECT_EQ(second.synchronize(), ncclSuccess) << lastError();
  EXPECT_EQ(a, Words(1000, 3));
  EXPECT_EQ(b, a);
  EXPECT_EQ(first.query(), ncclSuccess);
}

// Each sum needs the one before; streams change, and every fifth call has none.
TEST(HostStream, CallsOfACommunicatorRunInOrderOnAnyStreams) {
  constexpr int kRanks = 3, kCalls = 20;
  const ncclUniqueId id = newId();
  onThreads(kRanks, [&](int rank) {
    const Comm comm(id, kRanks, rank);
    const Stream streams[3];
    Words words(20'000, 1);
    for (int call = 0; call < kCalls; ++call) {
      cudaStream_t stream =
          call % 5 == 4 ? nullptr : static_cast<cudaStream_t>(streams[(call * 7 + rank) % 3]);
      ASSERT_EQ(sum(words, comm, stream), ncclSuccess) << lastError();
    }
    for (const Stream& stream : streams) EXPECT_EQ(stream.synchronize(), ncclSuccess) << lastError();
    uint32_t expected = 1;
    for (int call = 0; call < kCalls; ++call) expected *= kRanks;
    EXPECT_EQ(words, Words(words.size(), expected));
  });
}

// What is first on the stream keeps what comes after waiting, though the latter could run.
TEST(HostStream, CallsOnAStreamRunInOrder) {
  const Comms x(2), y(1);
  const Stream stream, peer;
  Words a(10, 1), b(10, 1), c(10, 7), d(10, 0);
  EXPECT_EQ(sum(a, x[0], stream), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(c.data(), d.data(), 10, ncclUint32, ncclSum, y[0], stream), ncclSuccess);
  EXPECT_TRUE(stays(d, 0));
  EXPECT_EQ(sum(b, x[1], peer), ncclSuccess);
  EXPECT_EQ(stream.synchronize(), ncclSuccess) << lastError();
  EXPECT_EQ(d, c);
  EXPECT_EQ(peer.synchronize(), ncclSuccess);
}

TEST(HostStream, DifferentStreamsRunSideBySide) {
  const Comms x(2), y(1);
  const Stream waits, goes, peer;
  Words a(10, 1), b(10, 1), c(10, 7), d(10, 0);
  EXPECT_EQ(sum(a, x[0], waits), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(c.data(), d.data(), 10, ncclUint32, ncclSum, y[0], goes), ncclSuccess);
  EXPECT_EQ(goes.synchronize(), ncclSuccess);
  EXPECT_EQ(d, c);
  EXPECT_EQ(waits.query(), ncclInProgress);
  EXPECT_EQ(sum(b, x[1], peer), ncclSuccess);
  EXPECT_EQ(waits.synchronize(), ncclSuccess);
  EXPECT_EQ(peer.synchronize(), ncclSuccess);
}

// ---- groups ----

TEST(HostStream, AGroupMayHoldAllRanksOnOneStreamOrOnOneEach) {
  constexpr int kRanks = 4;
  const Comms comms(kRanks);
  const Stream streams[kRanks];
  for (const bool shared : {true, false}) {
    std::vector<Words> words(kRanks, Words(5000, 1));
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int round = 0; round < 3; ++round)
      for (int rank = 0; rank < kRanks; ++rank)
        EXPECT_EQ(sum(words[static_cast<size_t>(rank)], comms[rank], streams[shared ? 0 : rank]),
                  ncclSuccess);
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << lastError();
    for (const Stream& stream : streams) EXPECT_EQ(stream.synchronize(), ncclSuccess) << lastError();
    for (const Words& result : words) EXPECT_EQ(result, Words(5000, kRanks * kRanks * kRanks));
  }
}

// A rank's calls without a stream make its caller wait, for those beside them on streams too.
TEST(HostStream, AGroupMayMixStreamsAndNone) {
  const Comms x(2), y(2);
  const Stream streams[2];
  std::vector<Words> words(8, Words(3000, 1));
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int rank = 0; rank < 2; ++rank) {
    const auto at = static_cast<size_t>(rank);
    EXPECT_EQ(sum(words[at], x[rank], streams[rank]), ncclSuccess);
    EXPECT_EQ(sum(words[2 + at], y[rank], nullptr), ncclSuccess);
    EXPECT_EQ(ncclSend(words[4 + at].data(), 3000, ncclUint32, 1 - rank, y[rank], streams[0]), ncclSuccess);
    EXPECT_EQ(ncclRecv(words[6 + at].data(), 3000, ncclUint32, 1 - rank, y[rank], streams[1]), ncclSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << lastError();
  EXPECT_EQ(words[2], Words(3000, 2));
  EXPECT_EQ(words[6], words[5]);
  for (const Stream& stream : streams) EXPECT_EQ(stream.synchronize(), ncclSuccess) << lastError();
  EXPECT_EQ(words[0], Words(3000, 2));
}

TEST(HostStream, ExtensionsRunOnStreams) {
  constexpr int kRanks = 3;
  const ncclUniqueId id = newId();
  std::atomic<int> come{0};
  onThreads(kRanks, [&](int rank) {
    const Comm comm(id, kRanks, rank);
    const Stream stream;
    const std::vector<size_t> counts(kRanks, 10), displacements{0, 10, 20};
    Words out(30, static_cast<uint32_t>(rank)), in(30, 99);
    EXPECT_EQ(topocclAllToAllV(out.data(), counts.data(), displacements.data(), in.data(), counts.data(),
                               displacements.data(), ncclUint32, comm, stream),
              ncclSuccess)
        << lastError();
    ++come;
    EXPECT_EQ(topocclBarrier(comm, stream), ncclSuccess) << lastError();
    EXPECT_EQ(stream.synchronize(), ncclSuccess);
    EXPECT_EQ(come, kRanks);
    for (size_t i = 0; i < in.size(); ++i) EXPECT_EQ(in[i], i / 10);
  });
}

// ---- operators ----

// A scalar that lives where the stream does is read when the call runs.
TEST(HostStream, ReadsADeferredScalarWhenTheCallRuns) {
  const Comms comms(1);
  const Comms gate(2);
  const Stream stream;
  Words held(1, 1), peer(1, 1);
  float scalar = 2, in = 10, out = 0;
  ncclRedOp_t op;
  ASSERT_EQ(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat, ncclScalarDevice, comms[0]), ncclSuccess);
  EXPECT_EQ(sum(held, gate[0], stream), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(&in, &out, 1, ncclFloat, op, comms[0], stream), ncclSuccess) << lastError();
  EXPECT_EQ(ncclRedOpDestroy(op, comms[0]), ncclSuccess);  // the call keeps what it needs
  scalar = 3;
  EXPECT_EQ(sum(peer, gate[1], nullptr), ncclSuccess);
  EXPECT_EQ(stream.synchronize(), ncclSuccess) << lastError();
  EXPECT_EQ(out, 30);
}

TEST(HostStream, RefusesWhatIsNoStream) {
  const Comms comms(1);
  EXPECT_EQ(topocclStreamCreate(nullptr), ncclInvalidArgument);
  EXPECT_NE(lastError().find("topocclStreamCreate: stream is NULL"), std::string::npos) << lastError();
  cudaStream_t dead = nullptr;
  ASSERT_EQ(topocclStreamCreate(&dead), ncclSuccess);
  ASSERT_EQ(topocclStreamDestroy(dead), ncclSuccess);
  int something = 0;
  Words words(1, 5);
  for (cudaStream_t stream :
       {dead, reinterpret_cast<cudaStream_t>(&something), reinterpret_cast<cudaStream_t>(uintptr_t{1})}) {
    for (const auto function : {topocclStreamSynchronize, topocclStreamQuery, topocclStreamDestroy})
      EXPECT_EQ(function(stream), ncclInvalidArgument);
    EXPECT_EQ(sum(words, comms[0], stream), ncclInvalidArgument);
    EXPECT_NE(lastError().find("it must be NULL or of topocclStreamCreate and not destroyed"),
              std::string::npos)
        << lastError();
  }
  EXPECT_EQ(topocclStreamSynchronize(nullptr), ncclInvalidArgument);
  EXPECT_NE(lastError().find("stream is NULL; it must be of topocclStreamCreate"), std::string::npos)
      << lastError();
}

}  // namespace
}  // namespace topoccl::test
