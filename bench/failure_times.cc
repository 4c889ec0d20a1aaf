// How long it takes until ranks learn of a death, and until an abort returns; kUsage says in what cases.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "nccl.h"

namespace {

constexpr int kRanks = 3, kVictim = 1;
constexpr long kMostRounds = 100'000;

constexpr const char* kUsage =
    "usage: failure_times [ROUNDS]   default: 20\n"
    "Three processes, one of which is killed: milliseconds until the slowest survivor is told, as a table "
    "of\n"
    "the median and the longest of so many rounds.\n"
    "  in calls        all are in large all-reduces, one after the other\n"
    "  before a call   the survivors wait in a call that the victim does not enter\n"
    "  between calls   the survivors ask ncclCommGetAsyncError every millisecond\n"
    "  without a root  as before a call, after the process that made the id has left and ended\n"
    "  abort           no death: ncclCommAbort of a rank in a call, while all others are stopped\n";

enum class Case { InCalls, BeforeACall, BetweenCalls, WithoutARoot, Abort };
constexpr const char* kNames[] = {"in calls", "before a call", "between calls", "without a root", "abort"};

double now() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// What the processes of a round share.
struct Shared {
  ncclUniqueId id;
  std::atomic<bool> made{false};
  std::atomic<int> ready{0};
  std::atomic<double> told[kRanks];  // when, or 0
};

void check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, ncclGetLastError(nullptr));
  std::_Exit(1);
}

ncclResult_t sum(ncclComm_t comm, size_t count) {
  std::vector<float> data(count, 1);
  return ncclAllReduce(data.data(), data.data(), count, ncclFloat, ncclSum, comm, nullptr);
}

// A survivor, until it is told.
void survive(Case which, ncclComm_t comm) {
  ncclResult_t result = ncclSuccess;
  float value = 0;
  switch (which) {
    case Case::InCalls:
      while (result == ncclSuccess) result = sum(comm, size_t{1} << 20);
      break;
    case Case::BeforeACall:
      result = sum(comm, 10);
      break;
    case Case::BetweenCalls:
      while (result == ncclSuccess) {
        ::usleep(1000);
        check(ncclCommGetAsyncError(comm, &result), "ncclCommGetAsyncError");
      }
      break;
    case Case::WithoutARoot:
      result = ncclRecv(&value, 1, ncclFloat, kVictim, comm, nullptr);
      break;
    case Case::Abort:
      break;
  }
  if (result != ncclRemoteError) {
    std::fprintf(stderr, "%s: result %d: %s\n", kNames[static_cast<int>(which)], result,
                 ncclGetLastError(nullptr));
    std::_Exit(1);
  }
}

void runRank(Case which, Shared& shared, int rank) {
  if (rank == 0) {
    check(ncclGetUniqueId(&shared.id), "ncclGetUniqueId");
    shared.made = true;
  }
  while (!shared.made) ::usleep(200);
  ncclComm_t comm = nullptr;
  check(ncclCommInitRank(&comm, kRanks, shared.id, rank), "ncclCommInitRank");
  check(sum(comm, 1000), "ncclAllReduce");
  if (which == Case::WithoutARoot && rank == 0) {
    check(ncclCommDestroy(comm), "ncclCommDestroy");
    shared.told[0] = 1;
    std::exit(0);
  }
  ++shared.ready;
  if (which == Case::Abort && rank == 0) {
    std::thread caller([&] { sum(comm, 10); });
    ::usleep(50'000);
    while (shared.ready <= kRanks) ::usleep(200);  // the others are stopped
    const double begin = now();
    check(ncclCommAbort(comm), "ncclCommAbort");
    shared.told[0] = now() - begin;
    caller.join();
    std::_Exit(0);
  }
  if (rank == kVictim && which == Case::InCalls)
    while (sum(comm, size_t{1} << 20) == ncclSuccess) {
    }
  if (rank == kVictim || which == Case::Abort)
    for (;;) ::pause();
  survive(which, comm);
  shared.told[rank] = now();
  std::_Exit(0);
}

// Milliseconds from the kill until the last survivor was told, or of the abort.
double round(Case which) {
  auto* const shared =
      new (::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared;
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.push_back(::fork());
    if (ranks.back() == 0) runRank(which, *shared, rank);
  }
  const int expected = which == Case::WithoutARoot ? kRanks - 1 : kRanks;
  while (shared->ready < expected) ::usleep(1000);
  if (which == Case::WithoutARoot) ::waitpid(ranks[0], nullptr, 0);
  static std::minstd_rand moments(static_cast<unsigned>(::getpid()));
  ::usleep(static_cast<useconds_t>(100'000 + moments() % 50'000));
  if (which == Case::Abort) {
    for (int rank = 1; rank < kRanks; ++rank) ::kill(ranks[static_cast<size_t>(rank)], SIGSTOP);
    ++shared->ready;
  }
  const double killed = now();
  if (which != Case::Abort) ::kill(ranks[kVictim], SIGKILL);
  double slowest = 0;
  if (which == Case::Abort) {
    ::waitpid(ranks[0], nullptr, 0);
    slowest = shared->told[0];
    for (int rank = 1; rank < kRanks; ++rank) ::kill(ranks[static_cast<size_t>(rank)], SIGKILL);
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    int status = 0;
    ::waitpid(ranks[static_cast<size_t>(rank)], &status, 0);
    if (which == Case::Abort || rank == kVictim || (which == Case::WithoutARoot && rank == 0)) continue;
    slowest = std::max(slowest, shared->told[rank] - killed);
  }
  ::munmap(shared, sizeof(Shared));
  return slowest;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "20";
  if (first == "-h" || first == "--help") {
    std::fputs(kUsage, stdout);
    return 0;
  }
  char* end = nullptr;
  const long rounds = std::strtol(first.c_str(), &end, 10);
  if (argc > 2 || *end != '\0' || rounds < 1 || rounds > kMostRounds) {
    std::fprintf(stderr, "failure_times: ROUNDS is \"%s\"; it must be a number from 1 to %ld\n%s",
                 first.c_str(), kMostRounds, kUsage);
    return 2;
  }
  std::printf("| case | median ms | longest ms | rounds |\n| --- | --- | --- | --- |\n");
  for (const Case which :
       {Case::InCalls, Case::BeforeACall, Case::BetweenCalls, Case::WithoutARoot, Case::Abort}) {
    std::vector<double> times;
    for (long i = 0; i < rounds; ++i) times.push_back(round(which));
    std::sort(times.begin(), times.end());
    std::printf("| %s | %.1f | %.1f | %ld |\n", kNames[static_cast<int>(which)], times[times.size() / 2],
                times.back(), rounds);
    std::fflush(stdout);
  }
  return 0;
}
