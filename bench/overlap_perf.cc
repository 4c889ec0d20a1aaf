// What host streams are for: communication that runs while the caller computes.
//
// Ranks are threads. Each takes turns: it issues a sum, computes, and needs the sum only a turn later. The
// same turns are timed with stream NULL, where the sum is done before the computation begins, and with host
// streams, for three kinds of computation of which each takes as long as the sum alone, on average:
//
//   elsewhere  the caller waits, as for a disk or another device: its core is free meanwhile
//   here       the caller computes on a core that the sum needs too, when there is no spare one
//   uneven     as "here", but a rank computes twice as much in every other turn, and nothing in between: even
//              and odd ranks take turns, so with stream NULL all wait for the slower half each time
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/failure.h"
#include "common/size_text.h"
#include "topoccl.h"

namespace topoccl::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRepeats = 9, kTurns = 24;

enum class Computing { None, Elsewhere, Here, Uneven };

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Work that takes as long as it takes, unlike waiting for a clock.
void computeSteps(uint64_t steps) {
  uint64_t state = steps;
  for (uint64_t i = 0; i < steps; i++) state = state * 6364136223846793005u + 1442695040888963407u;
  asm volatile("" : "+r"(state));  // somebody wants it
}

// How many steps a core takes in a second when nothing disturbs it.
double stepsPerSecond() {
  constexpr uint64_t kSteps = 4 << 20;
  double best = 0;
  for (int i = 0; i < 20; i++) {
    const Clock::time_point begin = Clock::now();
    computeSteps(kSteps);
    best = std::max(best, static_cast<double>(kSteps) / secondsSince(begin));
  }
  return best;
}

class Rank {
 public:
  Rank(ncclComm_t comm, int rank, int ranks, size_t count, double speed)
      : comm_(comm), rank_(rank), ranks_(ranks), speed_(speed) {
    for (std::vector<float>& values : in_) values.assign(count, 1);
    for (std::vector<float>& values : out_) values.assign(count, 0);
    for (cudaStream_t& stream : streams_) check(topocclStreamCreate(&stream));
  }
  ~Rank() {
    for (cudaStream_t stream : streams_) topocclStreamDestroy(stream);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  // Seconds a turn. Collective.
  double turns(Computing kind, double seconds, bool sums, bool onStreams) {
    check(topocclBarrier(comm_, nullptr));
    const Clock::time_point begin = Clock::now();
    for (int turn = 0; turn < kTurns; turn++) {
      const auto now = static_cast<size_t>(turn % 2);
      if (sums) sum(turn, onStreams ? streams_[now] : nullptr);
      compute(kind, seconds, turn);
      if (onStreams) check(topocclStreamSynchronize(streams_[1 - now]));
      if (sums && turn > 0) verifyFirst(turn - 1);
    }
    for (cudaStream_t stream : streams_) check(topocclStreamSynchronize(stream));
    check(topocclBarrier(comm_, nullptr));
    const double elapsed = secondsSince(begin);
    if (sums) verifyAll();
    return elapsed / kTurns;
  }

  // The greatest of all ranks' values. Collective.
  double greatest(double value) {
    check(ncclAllReduce(&value, &value, 1, ncclDouble, ncclMax, comm_, nullptr));
    return value;
  }

 private:
  // The first element is the turn's number, the others are 1.
  void sum(int turn, cudaStream_t stream) {
    std::vector<float>& in = in_[static_cast<size_t>(turn % 2)];
    in[0] = static_cast<float>(turn);
    check(ncclAllReduce(in.data(), out_[static_cast<size_t>(turn % 2)].data(), in.size(), ncclFloat, ncclSum,
                        comm_, stream));
  }

  void verifyFirst(int turn) const {
    expect(out_[static_cast<size_t>(turn % 2)][0] == static_cast<float>(turn * ranks_));
  }
  void verifyAll() {
    for (int turn = kTurns - 2; turn < kTurns; turn++) {
      verifyFirst(turn);
      std::vector<float>& result = out_[static_cast<size_t>(turn % 2)];
      expect(std::all_of(result.begin() + 1, result.end(),
                         [&](float value) { return value == static_cast<float>(ranks_); }));
      std::fill(result.begin(), result.end(), -1.0f);
    }
  }
  static void expect(bool right) {
    if (!right) throw Failure(ExitCode::WrongData, "a sum is wrong");
  }

  void compute(Computing kind, double seconds, int turn) const {
    if (kind == Computing::None) return;
    if (kind == Computing::Elsewhere)
      return std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    double share = 1;
    if (kind == Computing::Uneven) share = (turn + rank_) % 2 == 0 ? 2 : 0;
    computeSteps(static_cast<uint64_t>(share * seconds * speed_));
  }

  ncclComm_t comm_;
  int rank_, ranks_;
  double speed_;
  std::vector<float> in_[2], out_[2];
  cudaStream_t streams_[2] = {};
};

struct Row {
  const char* name;
  Computing kind;
  std::vector<double> alone{}, inTurn{}, together{};  // seconds a turn
};

void print(const Row& row, double sum) {
  const double alone = median(row.alone), inTurn = median(row.inTurn), together = median(row.together);
  std::printf("%10s %12.1f %12.1f %12.1f %12.1f %8.2f\n", row.name, 1e6 * alone, 1e6 * sum, 1e6 * inTurn,
              1e6 * together, inTurn / together);
}

// All ranks do the same; the first one reports.
void runRank(Rank& rank, bool reports) {
  std::vector<double> sums;
  for (int i = 0; i < kRepeats; i++) sums.push_back(rank.turns(Computing::None, 0, true, false));
  const double sum = rank.greatest(median(sums));
  Row rows[] = {
      {"elsewhere", Computing::Elsewhere}, {"here", Computing::Here}, {"uneven", Computing::Uneven}};
  for (int repeat = 0; repeat < kRepeats; repeat++) {
    for (Row& row : rows) {
      row.alone.push_back(rank.turns(row.kind, sum, false, false));
      row.inTurn.push_back(rank.turns(row.kind, sum, true, false));
      row.together.push_back(rank.turns(row.kind, sum, true, true));
    }
  }
  if (!reports) return;
  std::printf("# microseconds a turn, medians of %d x %d turns\n", kRepeats, kTurns);
  std::printf("#%9s %12s %12s %12s %12s %8s\n", "computes", "alone", "sum alone", "stream NULL",
              "host stream", "ratio");
  for (const Row& row : rows) print(row, sum);
}

void runRanks(int ranks, size_t bytes) {
  const double speed = stepsPerSecond();
  std::vector<ncclComm_t> comms(static_cast<size_t>(ranks));
  check(ncclCommInitAll(comms.data(), ranks, nullptr));
  std::printf("# overlap_perf: %d ranks, float32 sum of %zu bytes, %u cores\n", ranks, bytes,
              std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; rank++) {
    threads.emplace_back([&, rank] {
      try {
        ncclComm_t comm = comms[static_cast<size_t>(rank)];
        {
          Rank it(comm, rank, ranks, bytes / sizeof(float), speed);
          runRank(it, rank == 0);
        }
        check(ncclCommDestroy(comm));
      } catch (const Failure& failure) {
        std::fprintf(stderr, "overlap_perf: %s\n", failure.what());
        std::_Exit(static_cast<int>(failure.code()));  // the other ranks wait for this one
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

int run(int argumentCount, char** arguments) {
  constexpr const char* kUsage = "usage: overlap_perf [BYTES [RANKS]]   default: 1M 2\n";
  const std::string first = argumentCount > 1 ? arguments[1] : "1M";
  const std::string second = argumentCount > 2 ? arguments[2] : "2";
  if (first == "-h" || first == "--help") {
    std::fputs(kUsage, stdout);
    return 0;
  }
  const std::optional<uint64_t> bytes = parseSize(first), ranks = parseSize(second);
  if (argumentCount > 3 || !bytes || *bytes < sizeof(float) || !ranks || *ranks < 1 || *ranks > 1024) {
    std::fprintf(stderr, "overlap_perf: BYTES is \"%s\", RANKS is \"%s\"; at least 4, and 1 to 1024\n%s",
                 first.c_str(), second.c_str(), kUsage);
    return static_cast<int>(ExitCode::BadArguments);
  }
  runRanks(static_cast<int>(*ranks), *bytes);
  return 0;
}

}  // namespace
}  // namespace topoccl::bench

int main(int argumentCount, char** arguments) {
  try {
    return topoccl::bench::run(argumentCount, arguments);
  } catch (const topoccl::bench::Failure& failure) {
    std::fprintf(stderr, "overlap_perf: %s\n", failure.what());
    return static_cast<int>(failure.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "overlap_perf: %s\n", error.what());
    return static_cast<int>(topoccl::bench::ExitCode::InternalError);
  }
}
