// Calls of any kind as values, with buffers that show what they must not touch.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "nccl.h"

namespace topoccl::test {

struct Call {
  enum Kind { AllReduce, Broadcast, Reduce, AllGather, ReduceScatter, AllToAll, Send, Receive };
  Kind kind = AllReduce;
  size_t count = 100;
  int root = 0;  // or peer
  ncclDataType_t type = ncclFloat;
  ncclRedOp_t op = ncclSum;
};

// Buffers of a rank with guards that nothing may change.
class Buffers {
 public:
  explicit Buffers(size_t bytes) : send_(bytes + 2 * kGuard, 1), receive_(bytes + 2 * kGuard, kPattern) {}
  const void* send() const { return send_.data() + kGuard; }
  void* receive() { return receive_.data() + kGuard; }
  void expectGuards() const {
    const auto isPattern = [](char byte) { return byte == kPattern; };
    EXPECT_TRUE(std::all_of(receive_.begin(), receive_.begin() + kGuard, isPattern));
    EXPECT_TRUE(std::all_of(receive_.end() - kGuard, receive_.end(), isPattern));
    EXPECT_TRUE(std::all_of(send_.begin(), send_.end(), [](char byte) { return byte == 1; }));
  }

 private:
  static constexpr size_t kGuard = 4096;
  static constexpr char kPattern = 0x5a;
  std::vector<char> send_, receive_;
};

inline ncclResult_t run(const Call& call, ncclComm_t comm, Buffers& buffers) {
  const void* in = buffers.send();
  void* out = buffers.receive();
  switch (call.kind) {
    case Call::AllReduce:
      return ncclAllReduce(in, out, call.count, call.type, call.op, comm, nullptr);
    case Call::Broadcast:
      return ncclBroadcast(in, out, call.count, call.type, call.root, comm, nullptr);
    case Call::Reduce:
      return ncclReduce(in, out, call.count, call.type, call.op, call.root, comm, nullptr);
    case Call::AllGather:
      return ncclAllGather(in, out, call.count, call.type, comm, nullptr);
    case Call::ReduceScatter:
      return ncclReduceScatter(in, out, call.count, call.type, call.op, comm, nullptr);
    case Call::AllToAll:
      return ncclAlltoAll(in, out, call.count, call.type, comm, nullptr);
    case Call::Send:
      return ncclSend(in, call.count, call.type, call.root, comm, nullptr);
    case Call::Receive:
      return ncclRecv(out, call.count, call.type, call.root, comm, nullptr);
  }
  return ncclInternalError;
}

inline size_t bytesOf(const Call& call, int ranks) {
  return call.count * sizeof(double) * static_cast<size_t>(ranks);
}

inline std::string lastError() {
  return ncclGetLastError(nullptr);
}

}  // namespace topoccl::test
