// core_ping: round-trip time of one cache line between two cores.
//
// Hosts move virtual cores between near (one shared cache) and far places from second to second, and
// measurements of ranks differ several times between the two. Bracket a run with this to know which it was.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

// The line that travels: odd while the answering core has it.
struct alignas(128) Line {
  std::atomic<unsigned> turn{0};
};

std::vector<int> allowedCores() {
  cpu_set_t set;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; core++) {
    if (CPU_ISSET(static_cast<size_t>(core), &set)) cores.push_back(core);
  }
  return cores;
}

// -1, with a message, for what is no core of this process.
int chosenCore(const char* text, const std::vector<int>& cores) {
  int core = -1;
  const char* last = text + std::strlen(text);
  const auto [end, error] = std::from_chars(text, last, core);
  const bool isAllowed = std::find(cores.begin(), cores.end(), core) != cores.end();
  if (error == std::errc() && end == last && isAllowed) return core;
  std::fprintf(stderr, "core_ping: \"%s\" is no core that this process may run on\n", text);
  return -1;
}

void pinTo(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(core), &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

void awaitTurn(const Line& line, unsigned turn) {
  while (line.turn.load(std::memory_order_acquire) != turn) {
  }
}

// Median over batches, in nanoseconds: a batch that was interrupted does not count.
double roundTrip(int first, int second) {
  constexpr unsigned kBatches = 51;
  constexpr unsigned kTrips = 2000;
  Line line;
  std::thread answer([&] {
    pinTo(second);
    for (unsigned trip = 0; trip < kBatches * kTrips; trip++) {
      awaitTurn(line, 2 * trip + 1);
      line.turn.store(2 * trip + 2, std::memory_order_release);
    }
  });
  std::vector<double> batches;
  std::thread ask([&] {
    pinTo(first);
    for (unsigned batch = 0; batch < kBatches; batch++) {
      const auto start = std::chrono::steady_clock::now();
      for (unsigned trip = batch * kTrips; trip < (batch + 1) * kTrips; trip++) {
        line.turn.store(2 * trip + 1, std::memory_order_release);
        awaitTurn(line, 2 * trip + 2);
      }
      const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
      batches.push_back(taken.count() / kTrips);
    }
  });
  ask.join();
  answer.join();
  std::nth_element(batches.begin(), batches.begin() + kBatches / 2, batches.end());
  return batches[kBatches / 2];
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<int> cores = allowedCores();
  if (count != 1 && count != 3) {
    const std::string first = arguments[1];
    const bool asked = count == 2 && (first == "-h" || first == "--help");
    std::fprintf(asked ? stdout : stderr,
                 "usage: core_ping [CORE CORE]\nPrints the round trip in nanoseconds; default: the first two "
                 "cores.\n");
    return asked ? 0 : 2;
  }
  if (count == 1 && cores.size() < 2) {
    std::fprintf(stderr, "core_ping: only one core to run on\n");
    return 1;
  }
  const int first = count == 3 ? chosenCore(arguments[1], cores) : cores[0];
  const int second = count == 3 ? chosenCore(arguments[2], cores) : cores[1];
  if (first < 0 || second < 0) return 2;
  std::printf("%.0f\n", roundTrip(first, second));
  return 0;
}
