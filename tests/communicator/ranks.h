// Ranks of a communicator through the C API: as threads of this process, or as processes of their own.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "nccl.h"
#include "support/shared_value.h"

namespace topoccl::test {

inline ncclUniqueId newId() {
  ncclUniqueId id;
  EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess) << ncclGetLastError(nullptr);
  return id;
}

// Runs body(rank) on `ranks` threads.
inline void onThreads(int ranks, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back([&, rank] { body(rank); });
  for (std::thread& thread : threads) thread.join();
}

// A fork copies the locks that other threads hold just then, and sanitizers' own are not made for that: the
// threads of roots must be asleep while this process forks.
inline void letRootsFallAsleep() {
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

// Runs body(rank) in `ranks` processes; expects each to exit with the value it returned: 0. A process that is
// to be killed by itself or others returns the status expected of it through `expected`.
inline void onProcesses(int ranks, const std::function<int(int)>& body,
                        const std::function<bool(int rank, int status)>& expected = {}) {
  std::fflush(nullptr);
  letRootsFallAsleep();
  SharedValue<std::atomic<bool>> allThere;  // nobody wakes a root before
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    if (child < 0) *allThere = true;
    ASSERT_GE(child, 0);
    if (child == 0) {
      while (!*allThere) ::usleep(1000);
      const int result = body(rank);
      std::fflush(nullptr);
      ::_exit(testing::Test::HasFailure() ? 99 : result);
    }
    children.push_back(child);
  }
  *allThere = true;
  for (int rank = 0; rank < ranks; ++rank) {
    int status = 0;
    ASSERT_EQ(::waitpid(children[static_cast<size_t>(rank)], &status, 0),
              children[static_cast<size_t>(rank)]);
    const bool good = expected ? expected(rank, status) : WIFEXITED(status) && WEXITSTATUS(status) == 0;
    EXPECT_TRUE(good) << "rank " << rank << " ended with status " << status;
  }
}

// A communicator of one rank, destroyed with the scope unless released.
class Comm {
 public:
  Comm(const ncclUniqueId& id, int ranks, int rank) {
    EXPECT_EQ(ncclCommInitRank(&comm_, ranks, id, rank), ncclSuccess) << ncclGetLastError(nullptr);
  }
  ~Comm() {
    if (comm_ != nullptr) {
      EXPECT_EQ(ncclCommDestroy(comm_), ncclSuccess) << ncclGetLastError(nullptr);
    }
  }
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;
  operator ncclComm_t() const { return comm_; }
  ncclComm_t release() { return std::exchange(comm_, nullptr); }

 private:
  ncclComm_t comm_ = nullptr;
};

// Sets variables for the time of a scope; read by every init.
class Environment {
 public:
  Environment(std::initializer_list<std::pair<const char*, std::string>> values) {
    for (const auto& [name, value] : values) {
      const char* const before = std::getenv(name);
      before_.emplace_back(name, before == nullptr ? "" : before);
      ::setenv(name, value.c_str(), 1);
    }
  }
  ~Environment() {
    for (const auto& [name, value] : before_)
      value.empty() ? ::unsetenv(name) : ::setenv(name, value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::vector<std::pair<const char*, std::string>> before_;
};

// What a C program can pass.
template <class Enum>
Enum outOfRange(int value) {
  Enum result;
  std::memcpy(&result, &value, sizeof(result));
  return result;
}

// Small whole numbers: sums of any order are exact in every type.
inline float input(int rank, size_t i) {
  return static_cast<float>((static_cast<size_t>(rank) * 31 + i * 7) % 64);
}

// One float sum, checked element by element.
inline void expectSum(ncclComm_t comm, int ranks, int rank, size_t count, bool inPlace = false) {
  std::vector<float> in(count), out(count, -1);
  for (size_t i = 0; i < count; ++i) in[i] = input(rank, i);
  float* const result = inPlace ? in.data() : out.data();
  ASSERT_EQ(ncclAllReduce(in.data(), result, count, ncclFloat, ncclSum, comm, nullptr), ncclSuccess)
      << ncclGetLastError(nullptr);
  for (size_t i = 0; i < count; ++i) {
    float expected = 0;
    for (int peer = 0; peer < ranks; ++peer) expected += input(peer, i);
    ASSERT_EQ(result[i], expected) << "rank " << rank << " element " << i << " of " << count;
  }
}

}  // namespace topoccl::test
