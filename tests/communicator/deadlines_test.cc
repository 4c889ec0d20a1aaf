// Deadlines: of init and of calls, by environment and per communicator, and the one report of a standstill.
#include <sys/stat.h>

#include <array>
#include <fstream>
#include <sstream>

#include "communicator/deadlines.h"
#include "communicator/ranks.h"
#include "topoccl.h"

namespace topoccl::test {
namespace {

using namespace std::chrono_literals;

std::string lastError() {
  return ncclGetLastError(nullptr);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

size_t countOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

ncclResult_t sum(ncclComm_t comm, size_t count) {
  std::vector<float> in(count, 1), out(count);
  return ncclAllReduce(in.data(), out.data(), count, ncclFloat, ncclSum, comm, nullptr);
}

TEST(Deadlines, OfInitListTheMissingRanks) {
  const ncclUniqueId id = newId();
  onThreads(2, [&](int rank) {  // of five
    ncclComm_t comm = nullptr;
    const topocclDeadlines_t limits = deadlines(0.3, -1, -1);
    EXPECT_EQ(topocclCommInitRank(&comm, 5, id, rank * 2, nullptr, &limits), ncclRemoteError);
    EXPECT_TRUE(contains(lastError(), "ranks 1, 3 and 4 of 5 did not join within 0.")) << lastError();
    EXPECT_EQ(comm, nullptr);
  });
}

TEST(Deadlines, OfCallsAreTheCommunicatorsOwn) {
  const ncclUniqueId ids[] = {newId(), newId()};
  std::atomic<bool> over{false};
  onThreads(2, [&](int rank) {
    const ncclComm_t strict = joined(ids[0], 2, rank, deadlines(-1, 0.2, -1));
    const ncclComm_t patient = joined(ids[1], 2, rank, deadlines(-1, 0, -1));
    if (rank == 0) {
      EXPECT_EQ(sum(strict, 10), ncclRemoteError);
      EXPECT_TRUE(contains(lastError(), "all_reduce #1 float32 x 10 sum did not move for 0.2 s"))
          << lastError();
      EXPECT_TRUE(contains(lastError(), "waits for rank 1 to begin it")) << lastError();
      over = true;
    } else {
      while (!over) std::this_thread::yield();
      std::this_thread::sleep_for(400ms);
    }
    EXPECT_EQ(sum(patient, 10), ncclSuccess) << lastError();
    EXPECT_EQ(ncclCommAbort(strict), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(patient), ncclSuccess);
  });
}

// It was late, but had all it needed for its call.
TEST(Deadlines, ThatOthersMissedAreToldAtTheLatestByFinalize) {
  const ncclUniqueId id = newId();
  std::atomic<int> told{0};
  onThreads(3, [&](int rank) {
    const ncclComm_t comm = joined(id, 3, rank, deadlines(-1, 0.1, -1));
    EXPECT_EQ(sum(comm, 1), ncclSuccess) << lastError();
    if (rank == 2) {
      while (told < 2) std::this_thread::yield();
      EXPECT_EQ(sum(comm, 1), ncclSuccess) << lastError();
      EXPECT_EQ(ncclCommFinalize(comm), ncclRemoteError) << lastError();
      EXPECT_TRUE(contains(lastError(), "did not move for 0.1 s")) << lastError();
    } else {
      EXPECT_EQ(sum(comm, 1), ncclRemoteError);
      ++told;
    }
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  });
}

TEST(Deadlines, AreInherited) {
  const ncclUniqueId id = newId();
  std::atomic<bool> over{false};
  onThreads(2, [&](int rank) {
    const ncclComm_t parent = joined(id, 2, rank, deadlines(-1, 0.2, -1));
    ncclComm_t child = nullptr;
    EXPECT_EQ(ncclCommSplit(parent, 0, 0, &child, nullptr), ncclSuccess);
    if (rank == 0) {
      EXPECT_EQ(sum(child, 10), ncclRemoteError);
      EXPECT_TRUE(contains(lastError(), "did not move for 0.2 s")) << lastError();
      over = true;
    }
    while (!over) std::this_thread::yield();
    EXPECT_EQ(ncclCommAbort(child), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(parent), ncclSuccess);
  });
}

TEST(Deadlines, OutOfRangeAreRefusedByName) {
  const ncclUniqueId id = newId();
  ncclComm_t comm = nullptr;
  const auto expectRefused = [&](const topocclDeadlines_t& limits, const char* named) {
    EXPECT_EQ(topocclCommInitRank(&comm, 1, id, 0, nullptr, &limits), ncclInvalidArgument) << named;
    EXPECT_TRUE(contains(lastError(), named)) << lastError();
  };
  expectRefused(deadlines(0, -1, -1), "deadlines->init is 0 seconds");
  expectRefused(deadlines(-1, 1e9, -1), "deadlines->collective is 1e+09 seconds");
  expectRefused(deadlines(-1, -1, 1e9), "deadlines->report is 1e+09 seconds");
  topocclDeadlines_t sized = deadlines(-1, -1, -1);
  sized.size = 3;
  expectRefused(sized, "deadlines->size is 3");
  EXPECT_EQ(topocclCommInitRank(&comm, 1, id, 0, nullptr, nullptr), ncclSuccess) << lastError();
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

// What these processes write to stderr.
class Stderr {
 public:
  Stderr() {
    path_ = testing::TempDir() + "stderr-of-" + std::to_string(::getpid());
    std::fflush(stderr);
    saved_ = ::dup(2);
    EXPECT_NE(::freopen(path_.c_str(), "w", stderr), nullptr);
  }
  std::string end() {
    std::fflush(stderr);
    ::dup2(saved_, 2);
    ::close(saved_);
    std::stringstream text;
    text << std::ifstream(path_).rdbuf();
    ::unlink(path_.c_str());
    return text.str();
  }

 private:
  std::string path_;
  int saved_;
};

// Without NCCL_DEBUG too: nothing else would be said.
TEST(Report, SaysOnceWhoHasNotArrivedAndWhatEachWaitsFor) {
  const ncclUniqueId id = newId();
  SharedValue<std::array<std::atomic<pid_t>, 4>> processes;
  Stderr stderrOfRanks;
  onProcesses(4, [&](int rank) {
    const ncclComm_t comm = joined(id, 4, rank, deadlines(-1, -1, 1.2));
    EXPECT_EQ(sum(comm, 10), ncclSuccess);
    (*processes)[static_cast<size_t>(rank)] = ::getpid();
    if (rank == 3) {  // it comes late
      std::this_thread::sleep_for(3s);
    }
    float value = 0;
    if (rank == 1) {
      EXPECT_EQ(ncclRecv(&value, 1, ncclFloat, 3, comm, nullptr), ncclSuccess) << lastError();
    }
    if (rank == 3) {
      EXPECT_EQ(ncclSend(&value, 1, ncclFloat, 1, comm, nullptr), ncclSuccess) << lastError();
    }
    EXPECT_EQ(sum(comm, 1000), ncclSuccess) << lastError();
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    return 0;
  });
  const std::string text = stderrOfRanks.end();
  EXPECT_EQ(countOf(text, "what the ranks of this node wait for"), 1U) << text;
  EXPECT_TRUE(contains(text, "has stood still for 1.")) << text;
  const auto says = [&](size_t rank, const std::string& rest) {
    return contains(text, "rank " + std::to_string(rank) + " (process " + std::to_string((*processes)[rank]) +
                              "): " + rest);
  };
  EXPECT_TRUE(says(1, "") && contains(text, "recv #1 float32 x 1 from rank 3: ")) << text;
  EXPECT_TRUE(says(0, "all_reduce #2 float32 x 1000 sum: ")) << text;
  EXPECT_TRUE(says(3, "has not arrived at ") &&
              contains(text, "its last collective was all_reduce #1 float32 x 10 sum; waits in no call"))
      << text;
  EXPECT_TRUE(contains(text, "waits for data from rank ") || contains(text, "to begin it")) << text;
}

TEST(Report, IsNotMadeWhereItIsNotWanted) {
  const ncclUniqueId id = newId();
  Stderr stderrOfRanks;
  onProcesses(2, [&](int rank) {
    const ncclComm_t comm = joined(id, 2, rank, deadlines(-1, -1, 0));
    if (rank == 1) std::this_thread::sleep_for(1500ms);
    EXPECT_EQ(sum(comm, 1000), ncclSuccess) << lastError();
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    return 0;
  });
  EXPECT_EQ(stderrOfRanks.end(), "");
}

}  // namespace
}  // namespace topoccl::test
