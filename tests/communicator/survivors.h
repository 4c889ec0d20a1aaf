// What tests of deaths and of shrinking share.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "communicator/ranks.h"

namespace topoccl::test {

inline std::string lastError() {
  return ncclGetLastError(nullptr);
}

inline bool names(const std::string& text, int rank) {
  return text.find("rank " + std::to_string(rank)) != std::string::npos;
}

inline ncclResult_t sum(ncclComm_t comm, size_t count) {
  std::vector<float> in(count, 1), out(count);
  const ncclResult_t result = ncclAllReduce(in.data(), out.data(), count, ncclFloat, ncclSum, comm, nullptr);
  int ranks = 0;
  if (result != ncclSuccess) return result;
  EXPECT_EQ(ncclCommCount(comm, &ranks), ncclSuccess);
  for (const float value : out) EXPECT_EQ(value, static_cast<float>(ranks));
  return result;
}

inline ncclResult_t awaitState(ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
       state == ncclSuccess && std::chrono::steady_clock::now() < end;
       std::this_thread::sleep_for(std::chrono::milliseconds(2)))
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
  return state;
}

inline ncclComm_t joined(const ncclUniqueId& id, int ranks, int rank) {
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRank(&comm, ranks, id, rank), ncclSuccess) << lastError();
  return comm;
}

inline ncclResult_t shrink(ncclComm_t comm, std::vector<int> excluded, ncclComm_t* next,
                           int flags = NCCL_SHRINK_ABORT) {
  return ncclCommShrink(comm, excluded.data(), static_cast<int>(excluded.size()), next, nullptr, flags);
}

// Shares an id that rank 0 makes.
struct Shared {
  std::atomic<bool> made{false};
  ncclUniqueId id{};
  std::atomic<int> arrived{0};
  std::atomic<int> told{0};
};

}  // namespace topoccl::test
