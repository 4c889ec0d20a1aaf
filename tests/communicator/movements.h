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

#include "communicator/functions.h"
#include "nccl.h"

namespace topoccl::test {

// SendRecv: every rank to the next, in a group.
enum class Movement {
  AllReduce,
  Broadcast,
  Reduce,
  AllGather,
  ReduceScatter,
  Gather,
  Scatter,
  AllToAll,
  SendRecv
};
inline constexpr Movement kMovements[] = {Movement::AllReduce, Movement::Broadcast,     Movement::Reduce,
                                          Movement::AllGather, Movement::ReduceScatter, Movement::Gather,
                                          Movement::Scatter,   Movement::AllToAll,      Movement::SendRecv};

inline const char* nameOf(Movement movement) {
  static constexpr const char* kNames[] = {"all_reduce", "broadcast",      "reduce",
                                           "all_gather", "reduce_scatter", "gather",
                                           "scatter",    "all_to_all",     "send_recv"};
  return kNames[static_cast<int>(movement)];
}

inline bool hasRoot(Movement movement) {
  return movement == Movement::Broadcast || movement == Movement::Reduce || movement == Movement::Gather ||
         movement == Movement::Scatter;
}

inline bool hasInPlace(Movement movement) {
  return movement != Movement::AllToAll && movement != Movement::SendRecv;
}

// One rank of a call; root -1 where there is none.
struct Site {
  int ranks, rank, root;

  size_t all() const { return static_cast<size_t>(ranks); }
  bool isRoot() const { return rank == root; }
};

inline size_t sendBlocks(Movement movement, const Site& site) {
  switch (movement) {
    case Movement::Broadcast:
      return site.isRoot() ? 1 : 0;
    case Movement::ReduceScatter:
    case Movement::AllToAll:
      return site.all();
    case Movement::Scatter:
      return site.isRoot() ? site.all() : 0;
    default:
      return 1;
  }
}

inline size_t receiveBlocks(Movement movement, const Site& site) {
  switch (movement) {
    case Movement::Reduce:
      return site.isRoot() ? 1 : 0;
    case Movement::AllGather:
    case Movement::AllToAll:
      return site.all();
    case Movement::Gather:
      return site.isRoot() ? site.all() : 0;
    default:
      return 1;
  }
}

// Where element i of what a rank receives comes from: element `index` of what `rank` sends, or of what all
// ranks send, reduced.
struct Origin {
  static constexpr int kAll = -1;
  int rank;
  size_t index;
};

inline Origin originOf(Movement movement, const Site& site, size_t count, size_t i) {
  const size_t own = static_cast<size_t>(site.rank) * count;
  const auto block = static_cast<int>(count == 0 ? 0 : i / count);
  const size_t within = count == 0 ? 0 : i % count;
  switch (movement) {
    case Movement::AllReduce:
    case Movement::Reduce:
      return {Origin::kAll, i};
    case Movement::ReduceScatter:
      return {Origin::kAll, own + i};
    case Movement::Broadcast:
      return {site.root, i};
    case Movement::Scatter:
      return {site.root, own + i};
    case Movement::AllGather:
    case Movement::Gather:
      return {block, within};
    case Movement::AllToAll:
      return {block, own + within};
    case Movement::SendRecv:
      return {(site.rank + site.ranks - 1) % site.ranks, i};
  }
  return {0, 0};
}

// Calls what `movement` stands for; the root is the site's.
inline ncclResult_t invoke(Movement movement, const Site& site, Arguments arguments) {
  arguments.root = site.root;
  if (movement != Movement::SendRecv) return kFunctions[static_cast<int>(movement)].call(arguments);
  const Arguments& a = arguments;
  const int next = (site.rank + 1) % site.ranks, previous = (site.rank + site.ranks - 1) % site.ranks;
  ncclResult_t results[4];
  results[0] = ncclGroupStart();
  results[1] = ncclSend(a.send, a.count, a.type, next, a.comm, a.stream);
  results[2] = ncclRecv(a.receive, a.count, a.type, previous, a.comm, a.stream);
  results[3] = ncclGroupEnd();
  for (const ncclResult_t result : results)
    if (result != ncclSuccess) return result;
  return ncclSuccess;
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
        site_{ranks, rank, root},
        count_(count),
        inPlace_(inPlace && hasInPlace(movement)),
        seed_(seed) {
    sendWords_.assign(sendBlocks(movement_, site_) * count_, 0);
    for (size_t i = 0; i < sendWords_.size(); ++i) sendWords_[i] = sent(site_.rank, i, seed_);
    receiveWords_.assign(receiveBlocks(movement_, site_) * count_, kUnwritten);
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
    Arguments arguments;
    arguments.send = sendBlocks(movement_, site_) > 0 ? sendAt_ : nullptr;
    arguments.receive = receiveBlocks(movement_, site_) > 0 ? receiveAt_ : nullptr;
    arguments.count = count_;
    arguments.comm = comm_;
    arguments.stream = stream;
    return invoke(movement_, site_, arguments);
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

  // The smaller buffer becomes the rank's own block of the larger.
  void placeInPlace() {
    unsigned char* const begin = sendAt_;
    const size_t own = static_cast<size_t>(site_.rank) * count_ * 4;
    const size_t sends = sendBlocks(movement_, site_), receives = receiveBlocks(movement_, site_);
    const bool narrowSend = sends == 1 && receives > 1;
    const bool narrowReceive = receives == 1 && sends > 1;
    sendAt_ = begin + (narrowSend ? own : 0);
    receiveAt_ = begin + (narrowReceive ? own : 0);
  }

  uint32_t expected(size_t i) const {
    const Origin origin = originOf(movement_, site_, count_, i);
    if (origin.rank != Origin::kAll) return sent(origin.rank, origin.index, seed_);
    uint32_t total = 0;
    for (int rank = 0; rank < site_.ranks; ++rank) total += sent(rank, origin.index, seed_);
    return total;
  }

  std::string where() const {
    return std::string(nameOf(movement_)) + " rank " + std::to_string(site_.rank) + " of " +
           std::to_string(site_.ranks) + " root " + std::to_string(site_.root) + " count " +
           std::to_string(count_) + (inPlace_ ? " in place" : "");
  }

  Movement movement_;
  ncclComm_t comm_;
  Site site_;
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
