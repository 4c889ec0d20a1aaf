// Host streams, and all ranks of a communicator in one thread's hands, for the time of a scope.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "topoccl.h"

namespace topoccl::test {

using Words = std::vector<uint32_t>;

inline std::string lastError() {
  return ncclGetLastError(nullptr);
}

// Destroyed with the scope.
class Stream {
 public:
  Stream() { EXPECT_EQ(topocclStreamCreate(&stream_), ncclSuccess) << lastError(); }
  ~Stream() { EXPECT_EQ(topocclStreamDestroy(stream_), ncclSuccess) << lastError(); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }

  ncclResult_t synchronize() const { return topocclStreamSynchronize(stream_); }
  ncclResult_t query() const { return topocclStreamQuery(stream_); }

 private:
  cudaStream_t stream_ = nullptr;
};

// All ranks of a communicator in this thread's hands.
class Comms {
 public:
  explicit Comms(int ranks) : comms_(static_cast<size_t>(ranks)) {
    EXPECT_EQ(ncclCommInitAll(comms_.data(), ranks, nullptr), ncclSuccess) << lastError();
  }
  ~Comms() {
    for (ncclComm_t comm : comms_)
      if (comm != nullptr) {
        EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess) << lastError();
      }
  }
  Comms(const Comms&) = delete;
  Comms& operator=(const Comms&) = delete;
  ncclComm_t operator[](int rank) const { return comms_[static_cast<size_t>(rank)]; }
  ncclComm_t release(int rank) { return std::exchange(comms_[static_cast<size_t>(rank)], nullptr); }

 private:
  std::vector<ncclComm_t> comms_;
};

// In place; every rank's words become the sum over ranks.
inline ncclResult_t sum(Words& words, ncclComm_t comm, cudaStream_t stream) {
  return ncclAllReduce(words.data(), words.data(), words.size(), ncclUint32, ncclSum, comm, stream);
}

// No reduction of two ranks' words: they stay as they are until both have called.
inline bool stays(const Words& words, uint32_t value) {
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  return words == Words(words.size(), value);
}

}  // namespace topoccl::test
