// One call of a collective through the C API, checked element by element: results, guards around them, and
// send buffers that must stay as they were.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "nccl.h"

namespace topoccl::test {

enum class Movement { AllReduce, Broadcast, Reduce, AllGather, ReduceScatter, Gather, Scatter, AllToAll };
inline constexpr Movement kMovements[] = {Movement::AllReduce, Movement::Broadcast,     Movement::Reduce,
                                          Movement::AllGather, Movement::ReduceScatter, Movement::Gather,
                                          Movement::Scatter,   Movement::AllToAll};

inline const char* nameOf(Movement movement) {
  static constexpr const char* kNames[] = {"all_reduce",     "broadcast", "reduce",  "all_gather",
                                           "reduce_scatter", "gather",    "scatter", "all_to_all"};
  return kNames[static_cast<int>(movement)];
}

inline bool hasRoot(Movement movement) {
  return movement == Movement::Broadcast || movement == Movement::Reduce || movement == Movement::Gather ||
         movement == Movement::Scatter;
}

// Element `index` of what a rank sends. Sums wrap, so that they are exact in any order.
inline uint32_t sent(int rank, size_t index, uint32_t seed) {
  return (static_cast<uint32_t>(rank) * 1000003 + static_cast<uint32_t>(index)) * 2654435761u + seed;
}

// One rank's part of a call.
class MovementCall {
 public:
  MovementCall(Movement movement, ncclComm_t comm, int ranks, int rank, int root, size_t count, bool inPlace,
               uint32_t seed = 0, size_t misalign = 0)
      : movement_(movement),
        comm_(comm),
        ranks_(ranks),
        rank_(rank),
        root_(root),
        count_(count),
        inPlace_(inPlace && movement != Movement::AllToAll),
        seed_(seed) {
    sendWords_.assign(sendBlocks() * count_, 0);
    for (size_t i = 0; i < sendWords_.size(); ++i) sendWords_[i] = sent(rank_, i, seed_);
    receiveWords_.assign(receiveBlocks() * count_, kUnwritten);
    const size_t larger = std::max(sendWords_.size(), receiveWords_.size());
    sendBytes_.assign((inPlace_ ? larger : sendWords_.size()) * 4 + 2 * kGuard + misalign, kGuardByte);
    receiveBytes_.assign(receiveWords_.size() * 4 + 2 * kGuard + misalign, kGuardByte);
    sendAt_ = sendBytes_.data() + kGuard + misalign;
    receiveAt_ = receiveBytes_.data() + kGuard + misalign;
    if (inPlace_) placeInPlace();
    if (!sendWords_.empty()) std::memcpy(sendAt_, sendWords_.data(), sendWords_.size() * 4);
    sendBefore_ = sendBytes_;
  }

  ncclResult_t run(cudaStream_t stream = nullptr) {
    const bool sends = sendBlocks() > 0, receives = receiveBlocks() > 0;
    const void* const in = sends ? sendAt_ : nullptr;
    void* const out = receives ? receiveAt_ : nullptr;
    switch (movement_) {
      case Movement::AllReduce:
        return ncclAllReduce(in, out, count_, ncclUint32, ncclSum, comm_, stream);
      case Movement::Broadcast:
        return ncclBroadcast(in, out, count_, ncclUint32, root_, comm_, stream);
      case Movement::Reduce:
        return ncclReduce(in, out, count_, ncclUint32, ncclSum, root_, comm_, stream);
      case Movement::AllGather:
        return ncclAllGather(in, out, count_, ncclUint32, comm_, stream);
      case Movement::ReduceScatter:
        return ncclReduceScatter(in, out, count_, ncclUint32, ncclSum, comm_, stream);
      case Movement::Gather:
        return ncclGather(in, out, count_, ncclUint32, root_, comm_, stream);
      case Movement::Scatter:
        return ncclScatter(in, out, count_, ncclUint32, root_, comm_, stream);
      case Movement::AllToAll:
        return ncclAlltoAll(in, out, count_, ncclUint32, comm_, stream);
    }
    return ncclInternalError;
  }

  // What is wrong with the buffers after the call; empty if nothing.
  std::string flaw() const {
    for (size_t i = 0; i < receiveWords_.size(); ++i) {
      uint32_t found;
      std::memcpy(&found, receiveAt_ + 4 * i, 4);
      if (found != expected(i)) return where() + " element " + std::to_string(i) + " is wrong";
    }
    if (!inPlace_ && sendBytes_ != sendBefore_) return where() + ": the send buffer changed";
    const std::vector<unsigned char>& written = inPlace_ ? sendBytes_ : receiveBytes_;
    for (size_t i = 0; i < kGuard; ++i)
      if (written[i] != kGuardByte || written[written.size() - 1 - i] != kGuardByte)
        return where() + ": a byte outside the buffer was written";
    return "";
  }

 private:
  static constexpr size_t kGuard = 64;
  static constexpr unsigned char kGuardByte = 0xa7;
  static constexpr uint32_t kUnwritten = 0xdeadbeef;

  size_t all() const { return static_cast<size_t>(ranks_); }
  bool isRoot() const { return rank_ == root_; }

  size_t sendBlocks() const {
    switch (movement_) {
      case Movement::Broadcast:
        return isRoot() ? 1 : 0;
      case Movement::ReduceScatter:
      case Movement::AllToAll:
        return all();
      case Movement::Scatter:
        return isRoot() ? all() : 0;
      default:
        return 1;
    }
  }
  size_t receiveBlocks() const {
    switch (movement_) {
      case Movement::Reduce:
        return isRoot() ? 1 : 0;
      case Movement::AllGather:
      case Movement::AllToAll:
        return all();
      case Movement::Gather:
        return isRoot() ? all() : 0;
      default:
        return 1;
    }
  }

  // The smaller buffer becomes the rank's own block of the larger.
  void placeInPlace() {
    unsigned char* const begin = sendAt_;
    const size_t own = static_cast<size_t>(rank_) * count_ * 4;
    const bool narrowSend = sendBlocks() == 1 && receiveBlocks() > 1;
    const bool narrowReceive = receiveBlocks() == 1 && sendBlocks() > 1;
    sendAt_ = begin + (narrowSend ? own : 0);
    receiveAt_ = begin + (narrowReceive ? own : 0);
  }

  uint32_t sum(size_t index) const {
    uint32_t total = 0;
    for (int rank = 0; rank < ranks_; ++rank) total += sent(rank, index, seed_);
    return total;
  }

  uint32_t expected(size_t i) const {
    const size_t own = static_cast<size_t>(rank_) * count_;
    const auto block = static_cast<int>(count_ == 0 ? 0 : i / count_);
    const size_t within = count_ == 0 ? 0 : i % count_;
    switch (movement_) {
      case Movement::AllReduce:
      case Movement::Reduce:
        return sum(i);
      case Movement::ReduceScatter:
        return sum(own + i);
      case Movement::Broadcast:
        return sent(root_, i, seed_);
      case Movement::Scatter:
        return sent(root_, own + i, seed_);
      case Movement::AllGather:
      case Movement::Gather:
        return sent(block, within, seed_);
      case Movement::AllToAll:
        return sent(block, own + within, seed_);
    }
    return 0;
  }

  std::string where() const {
    return std::string(nameOf(movement_)) + " rank " + std::to_string(rank_) + " of " +
           std::to_string(ranks_) + " root " + std::to_string(root_) + " count " + std::to_string(count_) +
           (inPlace_ ? " in place" : "");
  }

  Movement movement_;
  ncclComm_t comm_;
  int ranks_, rank_, root_;
  size_t count_;
  bool inPlace_;
  uint32_t seed_;
  std::vector<uint32_t> sendWords_, receiveWords_;
  std::vector<unsigned char> sendBytes_, receiveBytes_, sendBefore_;
  unsigned char* sendAt_ = nullptr;
  unsigned char* receiveAt_ = nullptr;
};

// The result of a call that returned `result`, when it has come: calls on a communicator that doesn't block
// are in progress first. 20 s at most.
inline ncclResult_t completed(ncclResult_t result, ncclComm_t comm) {
  for (int i = 0; i < 20'000 && result == ncclInProgress; ++i) {
    if (ncclCommGetAsyncError(comm, &result) != ncclSuccess) return ncclInternalError;
    if (result == ncclInProgress) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return result;
}

inline void expectMovement(Movement movement, ncclComm_t comm, int ranks, int rank, int root, size_t count,
                           bool inPlace, uint32_t seed = 0, size_t misalign = 0) {
  MovementCall call(movement, comm, ranks, rank, root, count, inPlace, seed, misalign);
  ASSERT_EQ(completed(call.run(), comm), ncclSuccess) << ncclGetLastError(nullptr);
  ASSERT_EQ(call.flaw(), "");
}

}  // namespace topoccl::test
