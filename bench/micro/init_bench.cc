// How long communicators take to come and go, ranks as threads of one process. Times are the last rank's.
//
//   initAll/ranks:R     ncclCommInitAll
//   initRank/ranks:R    ncclGetUniqueId, and ncclCommInitRank on a thread per rank
//   destroy/ranks:R     ncclCommDestroy on a thread per rank, after initRank
#include <benchmark/benchmark.h>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "nccl.h"

namespace {

using Clock = std::chrono::steady_clock;

void check(ncclResult_t result) {
  if (result != ncclSuccess) throw std::runtime_error(ncclGetLastError(nullptr));
}

double secondsOf(const std::function<void()>& body) {
  const Clock::time_point start = Clock::now();
  body();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void onThreads(size_t ranks, const std::function<void(size_t)>& body) {
  std::vector<std::jthread> threads;
  threads.reserve(ranks);
  for (size_t rank = 0; rank < ranks; ++rank) threads.emplace_back([&, rank] { body(rank); });
}

class Ranks {
 public:
  explicit Ranks(const benchmark::State& state) : comms_(static_cast<size_t>(state.range(0))) {}

  void initAll() { check(ncclCommInitAll(comms_.data(), count(), nullptr)); }
  void initRank() {
    ncclUniqueId id;
    check(ncclGetUniqueId(&id));
    onThreads(comms_.size(), [&](size_t rank) {
      check(ncclCommInitRank(&comms_[rank], count(), id, static_cast<int>(rank)));
    });
  }
  void destroy() {
    onThreads(comms_.size(), [&](size_t rank) { check(ncclCommDestroy(comms_[rank])); });
  }

 private:
  int count() const { return static_cast<int>(comms_.size()); }

  std::vector<ncclComm_t> comms_;
};

void initAll(benchmark::State& state) {
  Ranks ranks(state);
  for (auto _ : state) {
    state.SetIterationTime(secondsOf([&] { ranks.initAll(); }));
    ranks.destroy();
  }
}

void initRank(benchmark::State& state) {
  Ranks ranks(state);
  for (auto _ : state) {
    state.SetIterationTime(secondsOf([&] { ranks.initRank(); }));
    ranks.destroy();
  }
}

void destroy(benchmark::State& state) {
  Ranks ranks(state);
  for (auto _ : state) {
    ranks.initRank();
    state.SetIterationTime(secondsOf([&] { ranks.destroy(); }));
  }
}

void rankCounts(benchmark::internal::Benchmark* bench) {
  bench->ArgName("ranks")->Arg(2)->Arg(8)->Arg(64)->Arg(256)->UseManualTime()->Unit(benchmark::kMillisecond);
}
BENCHMARK(initAll)->Apply(rankCounts);
BENCHMARK(initRank)->Apply(rankCounts);
BENCHMARK(destroy)->Apply(rankCounts);

}  // namespace
