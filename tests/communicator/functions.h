// The functions of nccl.h that move data, as a table: what holds for all of them is tested in a loop.
#pragma once

#include <ostream>

#include "nccl.h"

namespace topoccl::test {

// What a call may be given; each function takes what it has a parameter for.
struct Arguments {
  const void* send = nullptr;
  void* receive = nullptr;
  size_t count = 0;
  ncclDataType_t type = ncclUint32;
  ncclRedOp_t op = ncclSum;
  int root = 0;  // or peer
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
};

// `send`, `receive` and `root` are the names of the parameters, nullptr where there is none. `blocksPerRank`:
// the larger buffer has one block per rank.
struct Function {
  const char* name;
  ncclResult_t (*call)(const Arguments&);
  const char* send;
  const char* receive;
  const char* root;
  bool reduces;
  bool blocksPerRank;
};

inline void PrintTo(const Function& function, std::ostream* out) {
  *out << function.name;
}

inline constexpr Function kFunctions[] = {
    {"ncclAllReduce",
     [](const Arguments& a) {
       return ncclAllReduce(a.send, a.receive, a.count, a.type, a.op, a.comm, a.stream);
     },
     "sendbuff", "recvbuff", nullptr, true, false},
    {"ncclBroadcast",
     [](const Arguments& a) {
       return ncclBroadcast(a.send, a.receive, a.count, a.type, a.root, a.comm, a.stream);
     },
     "sendbuff", "recvbuff", "root", false, false},
    {"ncclReduce",
     [](const Arguments& a) {
       return ncclReduce(a.send, a.receive, a.count, a.type, a.op, a.root, a.comm, a.stream);
     },
     "sendbuff", "recvbuff", "root", true, false},
    {"ncclAllGather",
     [](const Arguments& a) { return ncclAllGather(a.send, a.receive, a.count, a.type, a.comm, a.stream); },
     "sendbuff", "recvbuff", nullptr, false, true},
    {"ncclReduceScatter",
     [](const Arguments& a) {
       return ncclReduceScatter(a.send, a.receive, a.count, a.type, a.op, a.comm, a.stream);
     },
     "sendbuff", "recvbuff", nullptr, true, true},
    {"ncclGather",
     [](const Arguments& a) {
       return ncclGather(a.send, a.receive, a.count, a.type, a.root, a.comm, a.stream);
     },
     "sendbuff", "recvbuff", "root", false, true},
    {"ncclScatter",
     [](const Arguments& a) {
       return ncclScatter(a.send, a.receive, a.count, a.type, a.root, a.comm, a.stream);
     },
     "sendbuff", "recvbuff", "root", false, true},
    {"ncclAlltoAll",
     [](const Arguments& a) { return ncclAlltoAll(a.send, a.receive, a.count, a.type, a.comm, a.stream); },
     "sendbuff", "recvbuff", nullptr, false, true},
    {"ncclBcast",
     [](const Arguments& a) { return ncclBcast(a.receive, a.count, a.type, a.root, a.comm, a.stream); },
     nullptr, "buff", "root", false, false},
    {"ncclSend",
     [](const Arguments& a) { return ncclSend(a.send, a.count, a.type, a.root, a.comm, a.stream); },
     "sendbuff", nullptr, "peer", false, false},
    {"ncclRecv",
     [](const Arguments& a) { return ncclRecv(a.receive, a.count, a.type, a.root, a.comm, a.stream); },
     nullptr, "recvbuff", "peer", false, false}};

}  // namespace topoccl::test
