// What a step costs, and whole all-reduces of two threads through the executor, without communicator or API.
//
//   copySteps/steps:S                    one rank: S steps of 64 bytes each, time a step in "step"
//   oneThread/ranks:R                    a one-shot all-reduce of 8 bytes, all ranks driven by one thread
//   twoThreads/TRANSPORT_PROTOCOL/bytes:B     float sums; one-shot up to 32 KiB, two-shot above
#include <benchmark/benchmark.h>

#include <memory>
#include <thread>
#include <vector>

#include "schedule/builder.h"
#include "support/node_ranks.h"

namespace topoccl {
namespace {

using test::NodeRanks;
using test::Request;
using test::Transport;

constexpr uint32_t kSpins = 20'000;

void copySteps(benchmark::State& state) {
  const auto steps = static_cast<uint32_t>(state.range(0));
  ScheduleBuilder builder(1, 0, steps);
  for (uint32_t chunk = 0; chunk < steps; ++chunk) builder.step({kIn}, {kOut}, chunk);
  BoundSchedule bound(builder.take(), {});
  std::vector<unsigned char> in(steps * kGranuleBytes, 1), out(in.size());
  CallContext context;
  context.in = in.data();
  context.out = out.data();
  context.map = makeChunkMap(in.size(), 1, steps, kGranuleBytes, 1);
  for (auto _ : state) {
    bound.start(context, nullptr);
    while (bound.advance() != Progress::Done) {
    }
  }
  state.counters["step"] = benchmark::Counter(static_cast<double>(state.iterations()) * steps,
                                              benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(copySteps)->ArgName("steps")->Arg(1)->Arg(64)->Arg(1024);

void oneThread(benchmark::State& state) {
  const auto ranks = static_cast<int>(state.range(0));
  NodeRanks node(ranks, Transport::InProcess);
  Request request;
  request.algorithm = Algorithm::MeshOneShot;
  request.count = 2;
  std::vector<std::vector<float>> in(static_cast<size_t>(ranks), std::vector<float>(2, 1)), out = in;
  std::vector<const void*> ins;
  std::vector<void*> outs;
  for (auto& buffer : in) ins.push_back(buffer.data());
  for (auto& buffer : out) outs.push_back(buffer.data());
  for (auto _ : state) node.runOnOneThread(request, ins, outs);
}
BENCHMARK(oneThread)->ArgName("ranks")->Arg(1)->Arg(4);

Request requestOf(uint64_t bytes, Protocol protocol) {
  constexpr uint64_t kOneShotBytes = 32 << 10;
  constexpr uint64_t kStreamedBytes = 4 << 20;
  Request request;
  request.algorithm = bytes <= kOneShotBytes ? Algorithm::MeshOneShot : Algorithm::MeshTwoShot;
  request.protocol = protocol;
  request.count = bytes / sizeof(float);
  request.slotBytes = 128 << 10;
  request.directBytes = 16 << 10;
  request.streamed = bytes >= kStreamedBytes;
  return request;
}

// One rank of a pair that repeats a call. Calls are numbered; the second rank stops after number `last`.
class Repeater {
 public:
  Repeater(NodeRanks& node, const Request& request, int rank)
      : in_(request.count, 1.0F),
        out_(request.count),
        work_(node.makeWork(request, rank, in_.data(), out_.data(), 0)),
        bell_(&node.memory().board().doorbell(rank)) {}

  void call(uint64_t number) {
    Work* const works[] = {work_.get()};
    work_->renumber(number);
    waiter_.reset({kSpins, 8}, &bell_, 1);
    WorkQueue queue;
    queue.works = works;
    drive({&queue, 1}, waiter_);
  }

 private:
  std::vector<float> in_, out_;
  std::unique_ptr<NodeRanks::RankWork> work_;
  Doorbell* bell_;
  Waiter waiter_;
};

void twoThreads(benchmark::State& state, Transport transport, Protocol protocol) {
  const Request request = requestOf(static_cast<uint64_t>(state.range(0)), protocol);
  NodeRanks node(2, transport);
  uint64_t last = UINT64_MAX;
  std::thread peer([&] {
    Repeater rank(node, request, 1);
    for (uint64_t number = 1;; ++number) {
      rank.call(number);
      if (loadAcquire(&last) == number) return;
    }
  });
  Repeater rank(node, request, 0);
  uint64_t number = 0;
  for (auto _ : state) rank.call(++number);
  storeRelease(&last, ++number);
  rank.call(number);
  peer.join();
  state.SetBytesProcessed(state.range(0) * static_cast<int64_t>(state.iterations()));
}

void arguments(benchmark::internal::Benchmark* bench) {
  bench->ArgName("bytes")->Arg(8)->Arg(4 << 10)->Arg(1 << 20)->Arg(64 << 20)->UseRealTime();
}
BENCHMARK_CAPTURE(twoThreads, in_process_packet, Transport::InProcess, Protocol::Packet)->Apply(arguments);
BENCHMARK_CAPTURE(twoThreads, in_process_bulk, Transport::InProcess, Protocol::Bulk)->Apply(arguments);
BENCHMARK_CAPTURE(twoThreads, shm_packet, Transport::Shm, Protocol::Packet)->Apply(arguments);
BENCHMARK_CAPTURE(twoThreads, shm_bulk, Transport::Shm, Protocol::Bulk)->Apply(arguments);

}  // namespace
}  // namespace topoccl
