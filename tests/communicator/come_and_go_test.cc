// Communicators that come and go, whole or by force, leave nothing behind.
#include <dirent.h>
#include <malloc.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "communicator/ranks.h"
#include "communicator/streams.h"
#include "support/child.h"
#include "support/sanitized.h"

namespace topoccl::test {
namespace {

bool reduced() {
  return std::getenv("TOPOCCL_TEST_REDUCED") != nullptr;
}

int entries(const std::string& folder) {
  int count = 0;
  DIR* const open = ::opendir(folder.c_str());
  while (open != nullptr && ::readdir(open) != nullptr) ++count;
  if (open != nullptr) ::closedir(open);
  return count;
}

// What the process has of the system's.
struct Holdings {
  int descriptors = entries("/proc/self/fd");
  int threads = entries("/proc/self/task");
  long residentKibibytes = 0;
  long mappings = 0;
  long mappedKibibytes = 0;

  Holdings() {
    ::malloc_trim(0);
    std::ifstream status("/proc/self/status");
    for (std::string name; status >> name;) {
      if (name == "VmRSS:") status >> residentKibibytes;
      if (name == "VmSize:") status >> mappedKibibytes;
    }
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) ++mappings;
  }

  // Allocators keep some; a communicator's memory, a thread or a mapping for each round would be far more.
  std::string excessOver(const Holdings& before, int rounds) const {
    std::string text;
    const auto compare = [&](const char* what, long now, long then, long slack) {
      if (now > then + slack)
        text +=
            std::string(what) + " grew from " + std::to_string(then) + " to " + std::to_string(now) + "; ";
    };
    compare("descriptors", descriptors, before.descriptors, 0);
    compare("threads", threads, before.threads, 0);
    if (kSanitized) return text;  // freed memory is kept on purpose
    compare("mappings", mappings, before.mappings, rounds / 8);
    compare("mapped KiB", mappedKibibytes, before.mappedKibibytes, 40'960);
    compare("resident KiB", residentKibibytes, before.residentKibibytes, 4L * rounds);
    return text;
  }
};

// Roots end shortly after their last rank.
std::string excess(const Holdings& before, int rounds) {
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    text = Holdings().excessOver(before, rounds);
    if (text.empty()) return text;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return text;
}

void expectFlat(int rounds, const std::function<void()>& round) {
  ::mallopt(M_ARENA_MAX, 1);  // else it maps more whenever more threads allocate at once than ever before
  if (reduced()) rounds /= 10;
  const int warmUp = rounds / 10;
  for (int i = 0; i < warmUp; ++i) round();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const Holdings before;
  for (int i = 0; i < rounds; ++i) round();
  EXPECT_EQ(excess(before, rounds), "");
}

constexpr int kRounds = 500;

// How many arenas the allocator keeps is a matter of which threads met.
const int kOneArena = ::mallopt(M_ARENA_MAX, 1);

TEST(ComeAndGo, CreatedUsedAndDestroyedLeavesNothing) {
  expectFlat(kRounds, [] {
    const ncclUniqueId id = newId();
    onThreads(2, [&](int rank) {
      const Comm comm(id, 2, rank);
      expectSum(comm, 2, rank, 1000);
    });
  });
}

TEST(ComeAndGo, AllAtOnceWithStreamsAndSplitsLeavesNothing) {
  expectFlat(kRounds / 2, [] {
    const Comms comms(2);
    ncclComm_t parts[2] = {};
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(ncclCommSplit(comms[rank], 0, 0, &parts[rank], nullptr), ncclSuccess);
    }
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << lastError();
    const Stream stream;
    Words first(10, 1), second(10, 1);
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(sum(first, parts[0], stream), ncclSuccess);
    EXPECT_EQ(sum(second, parts[1], stream), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << lastError();
    EXPECT_EQ(stream.synchronize(), ncclSuccess) << lastError();
    for (ncclComm_t part : parts) EXPECT_EQ(ncclCommDestroy(part), ncclSuccess);
  });
}

TEST(ComeAndGo, AbortedLeavesNothing) {
  expectFlat(kRounds, [] {
    const ncclUniqueId id = newId();
    onThreads(2, [&](int rank) {
      ncclComm_t comm = nullptr;
      const ncclResult_t result = ncclCommInitRank(&comm, 2, id, rank);
      // The other may have aborted already.
      EXPECT_TRUE(result == ncclSuccess || result == ncclRemoteError) << lastError();
      if (comm != nullptr) {
        EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
      }
    });
  });
}

// Each makes the same communicators; the first makes the ids.
TEST(ComeAndGo, OfTwoProcessesLeavesNothing) {
  struct Boxes {
    ncclUniqueId ids[2 * kRounds];
    std::atomic<int> made{0};
    std::atomic<int> summed{0};
  };
  SharedValue<Boxes> boxes;
  onProcesses(2, [&](int rank) {
    int round = 0;
    expectFlat(kRounds, [&] {
      if (rank == 0) {
        boxes->ids[round] = newId();
        boxes->made = round + 1;
      }
      while (boxes->made <= round) ::usleep(100);
      ncclComm_t comm = nullptr;
      EXPECT_EQ(ncclCommInitRank(&comm, 2, boxes->ids[round], rank), ncclSuccess) << lastError();
      expectSum(comm, 2, rank, 1000);
      ++boxes->summed;
      while (boxes->summed < 2 * (round + 1)) ::usleep(100);  // an abort may fail the other's call
      EXPECT_EQ(round % 2 == 0 ? ncclCommDestroy(comm) : ncclCommAbort(comm), ncclSuccess);
      ++round;
    });
    return 0;
  });
}

// ---- in a crowd ----

TEST(ComeAndGo, HundredsOfRanksInit) {
  const int ranks = reduced() ? 64 : 256;
  {
    const Comms comms(ranks);
    onThreads(ranks, [&](int rank) { expectSum(comms[rank], ranks, rank, 10); });
  }
  const ncclUniqueId id = newId();
  onThreads(ranks, [&](int rank) {
    const Comm comm(id, ranks, rank);
    expectSum(comm, ranks, rank, 10);
  });
}

// ---- by force ----

std::set<std::string> namesIn(const char* folder) {
  std::set<std::string> names;
  DIR* const open = ::opendir(folder);
  while (const dirent* entry = open == nullptr ? nullptr : ::readdir(open)) names.insert(entry->d_name);
  if (open != nullptr) ::closedir(open);
  return names;
}

// Names of this library's in the system.
std::set<std::string> traces() {
  std::set<std::string> found;
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);)
    if (line.find("topoccl") != std::string::npos) found.insert(line.substr(line.find("topoccl")));
  for (const char* folder : {"/dev/shm", "/tmp"})
    for (const std::string& name : namesIn(folder))
      if (name.find("topoccl") != std::string::npos || name.find("nccl") != std::string::npos)
        found.insert(std::string(folder) + "/" + name);
  return found;
}

// Three ranks; the id is made by rank 0, so that its death is the root's too.
class Doomed {
 public:
  Doomed() {
    for (int rank = 0; rank < kRanks; ++rank)
      ranks_.push_back(startChild([&] {
        live(rank);
        return 0;
      }));
  }
  void kill(int rank) const { ::kill(ranks_[static_cast<size_t>(rank)], SIGKILL); }
  void expectAllEnd() const {
    for (const pid_t rank : ranks_) {
      const std::string end = endOf(rank);
      EXPECT_TRUE(end.empty() || end == "signal 9") << end;
    }
  }

  static constexpr int kRanks = 3;

 private:
  struct Box {
    ncclUniqueId id;
    std::atomic<bool> made{false};
  };

  void live(int rank) {
    ::setenv("TOPOCCL_INIT_TIMEOUT", "1", 1);
    if (rank == 0) {
      box_->id = newId();
      box_->made = true;
    }
    while (!box_->made) ::usleep(100);
    ncclComm_t comm = nullptr;
    if (ncclCommInitRank(&comm, kRanks, box_->id, rank) != ncclSuccess) return;
    std::vector<float> data(10'000);
    while (ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclSum, comm, nullptr) ==
           ncclSuccess) {
    }
    ncclCommAbort(comm);
  }

  SharedValue<Box> box_;
  std::vector<pid_t> ranks_;
};

TEST(ComeAndGo, KilledAtAnyMomentLeavesNothing) {
  const std::set<std::string> before = traces();
  std::mt19937 random(1);
  const int rounds = reduced() ? 10 : 50;
  for (int i = 0; i < rounds; ++i) {
    const Doomed doomed;
    ::usleep(static_cast<useconds_t>(random() % 15'000));
    const int victim = static_cast<int>(random() % (Doomed::kRanks + 1));
    for (int rank = 0; rank < Doomed::kRanks; ++rank)
      if (rank == victim || victim == Doomed::kRanks) doomed.kill(rank);
    if (victim == 0)  // the others may wait for an id that nobody makes
      for (int rank = 1; rank < Doomed::kRanks; ++rank) {
        ::usleep(50'000);
        doomed.kill(rank);
      }
    doomed.expectAllEnd();
  }
  std::set<std::string> left;
  for (int wait = 0; wait < 500; ++wait) {
    left.clear();
    const std::set<std::string> now = traces();
    std::set_difference(now.begin(), now.end(), before.begin(), before.end(),
                        std::inserter(left, left.end()));
    if (left.empty()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (const std::string& name : left) ADD_FAILURE() << "left behind: " << name;
}

}  // namespace
}  // namespace topoccl::test
