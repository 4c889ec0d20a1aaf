// The C boundary: results, last errors, and one state behind two libraries.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "nccl.h"
#include "topoccl.h"

namespace {

std::string lastError() {
  return ncclGetLastError(nullptr);
}

TEST(Entry, GivesNcclsVersionAndTexts) {
  int version = 0;
  EXPECT_EQ(ncclGetVersion(&version), ncclSuccess);
  EXPECT_EQ(version, 23203);
  EXPECT_STREQ(ncclGetErrorString(ncclSuccess), "no error");
  EXPECT_STREQ(ncclGetErrorString(ncclInProgress), "NCCL operation in progress");
  EXPECT_STREQ(ncclGetErrorString(ncclTimeout), "timeout");
  EXPECT_STREQ(ncclGetErrorString(ncclNumResults), "unknown result code");
  EXPECT_STREQ(ncclGetErrorString(static_cast<ncclResult_t>(15)), "unknown result code");
  EXPECT_TRUE(std::string(topocclGetVersionString()).rfind("TopoCCL ", 0) == 0);
}

TEST(Entry, NullOutputsAreInvalidArgumentsThatSayWhich) {
  ncclUniqueId id{};
  EXPECT_EQ(ncclGetVersion(nullptr), ncclInvalidArgument);
  EXPECT_EQ(lastError(), "ncclGetVersion: version is NULL; it must point to where the result goes");
  EXPECT_EQ(ncclGetUniqueId(nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(nullptr, 1, id, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitAll(nullptr, 1, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclMemAlloc(nullptr, 8), ncclInvalidArgument);
  EXPECT_NE(lastError().find("ncclMemAlloc: ptr is NULL"), std::string::npos);
  EXPECT_EQ(topocclGetDevices(nullptr, 0, nullptr), ncclInvalidArgument);
  int count = 0;
  EXPECT_EQ(topocclGetDevices(nullptr, 2, &count), ncclInvalidArgument);
  EXPECT_EQ(topocclGetDevices(nullptr, -1, &count), ncclInvalidArgument);
}

TEST(Entry, RanksOutOfRangeAreRejected) {
  ncclComm_t comm = nullptr;
  ncclUniqueId id{};
  EXPECT_EQ(ncclCommInitRank(&comm, 2, id, 0), ncclInvalidArgument) << "no id";
  EXPECT_EQ(ncclCommInitRank(&comm, 0, id, 0), ncclInvalidArgument);
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  EXPECT_EQ(ncclCommInitRank(&comm, 2, id, 2), ncclInvalidArgument) << lastError();
  EXPECT_NE(lastError().find("rank 2"), std::string::npos) << lastError();
  EXPECT_EQ(ncclCommInitAll(&comm, 0, nullptr), ncclInvalidArgument);
  ncclConfig_t config{};
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInvalidArgument);
  EXPECT_EQ(comm, nullptr);
}

TEST(Entry, NullCommunicatorsAreInvalidArguments) {
  int value = 0;
  ncclResult_t state = ncclSuccess;
  float data = 0;
  EXPECT_EQ(ncclCommCount(nullptr, &value), ncclInvalidArgument);
  EXPECT_EQ(ncclCommUserRank(nullptr, &value), ncclInvalidArgument);
  EXPECT_EQ(ncclCommCuDevice(nullptr, &value), ncclInvalidArgument);
  EXPECT_EQ(ncclCommGetAsyncError(nullptr, &state), ncclInvalidArgument);
  EXPECT_EQ(ncclCommFinalize(nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommDestroy(nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommAbort(nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(&data, &data, 1, ncclFloat, ncclSum, nullptr, nullptr), ncclInvalidArgument);
}

TEST(Entry, ACommunicatorOfOneRankChecksItsArguments) {
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess) << lastError();
  int value = -1;
  EXPECT_EQ(ncclCommCount(comm, &value), ncclSuccess);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(ncclCommUserRank(comm, &value), ncclSuccess);
  EXPECT_EQ(value, 0);
  EXPECT_EQ(ncclCommCount(comm, nullptr), ncclInvalidArgument);
  float in = 3;
  float out = 0;
  EXPECT_EQ(ncclAllReduce(&in, &out, 1, ncclFloat, ncclSum, comm, nullptr), ncclSuccess) << lastError();
  EXPECT_EQ(out, 3);
  EXPECT_EQ(ncclAllReduce(nullptr, nullptr, 0, ncclFloat, ncclSum, comm, nullptr), ncclSuccess)
      << lastError();
  EXPECT_EQ(ncclAllReduce(nullptr, &out, 1, ncclFloat, ncclSum, comm, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(&in, &out, 1, ncclNumTypes, ncclSum, comm, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(&in, &out, 1, ncclFloat, ncclNumOps, comm, nullptr), ncclInvalidArgument);
  topocclPlan_t plan{};
  EXPECT_EQ(topocclCommExplain(comm, "all_reduce", 1000, ncclFloat, &plan), ncclSuccess) << lastError();
  EXPECT_NE(plan.algorithm[0], '\0');
  for (const char* spelling : {"allreduce", "AllReduce", "AllToAll", "reduce_scatter"})
    EXPECT_EQ(topocclCommExplain(comm, spelling, 1000, ncclFloat, &plan), ncclSuccess) << lastError();
  for (const char* spelling : {"send_recv", "SendRecv"}) {
    EXPECT_EQ(topocclCommExplain(comm, spelling, 1000, ncclFloat, &plan), ncclSuccess) << lastError();
    EXPECT_STREQ(plan.algorithm, "p2p");
  }
  EXPECT_EQ(plan.channels, 1);
  EXPECT_EQ(topocclCommExplain(comm, "all_confuse", 1000, ncclFloat, &plan), ncclInvalidArgument);
  EXPECT_EQ(
      lastError(),
      "topocclCommExplain: collective is \"all_confuse\"; it must be one of all_reduce, broadcast, reduce, "
      "all_gather, reduce_scatter, gather, scatter, all_to_all, send_recv");
  EXPECT_EQ(topocclCommExplain(comm, nullptr, 1000, ncclFloat, &plan), ncclInvalidArgument);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(comm), ncclInvalidArgument) << "a dead handle";
}

TEST(Entry, ExplainRefusesWhatACallRefuses) {
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess) << lastError();
  const std::vector<char> in(8);
  std::vector<char> out(8);
  for (int type = -1; type <= ncclNumTypes; type++) {
    const auto datatype = static_cast<ncclDataType_t>(type);
    bool isTaken = false;
    for (const ncclRedOp_t op : {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg})
      isTaken |= ncclAllReduce(in.data(), out.data(), 1, datatype, op, comm, nullptr) == ncclSuccess;
    topocclPlan_t plan{};
    EXPECT_EQ(topocclCommExplain(comm, "all_reduce", 1, datatype, &plan),
              isTaken ? ncclSuccess : ncclInvalidArgument)
        << type;
  }
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(Entry, MemoryIsAllocatedAndFreed) {
  void* memory = nullptr;
  ASSERT_EQ(ncclMemAlloc(&memory, 100000), ncclSuccess) << lastError();
  std::memset(memory, 1, 100000);
  EXPECT_EQ(ncclMemFree(memory), ncclSuccess);
  EXPECT_EQ(ncclMemFree(nullptr), ncclSuccess);
  EXPECT_EQ(ncclMemAlloc(&memory, 0), ncclSuccess);
  EXPECT_EQ(memory, nullptr);
}

TEST(Entry, GroupsMustBeStartedToEnd) {
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
}

TEST(Entry, LeavesErrnoAlone) {
  errno = 4711;
  ncclGetVersion(nullptr);
  int count = 0;
  topocclGetDevices(nullptr, 0, &count);
  EXPECT_EQ(errno, 4711);
}

TEST(Entry, RanksBeyondTheDevicesTakeTurns) {
  int devices = 0;
  ASSERT_EQ(topocclGetDevices(nullptr, 0, &devices), ncclSuccess);
  std::vector<ncclComm_t> comms(static_cast<size_t>(devices) + 2);
  ASSERT_EQ(ncclCommInitAll(comms.data(), devices + 2, nullptr), ncclSuccess) << lastError();
  for (int rank = 0; rank < devices + 2; rank++) {
    int device = -1;
    EXPECT_EQ(ncclCommCuDevice(comms[static_cast<size_t>(rank)], &device), ncclSuccess);
    EXPECT_EQ(device, rank % devices);
    EXPECT_EQ(ncclCommDestroy(comms[static_cast<size_t>(rank)]), ncclSuccess);
  }
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitAll(&comm, 1, &devices), ncclInvalidArgument) << "no such device";
}

TEST(Entry, DevicesAreListedUpToTheCapacity) {
  int count = 0;
  ASSERT_EQ(topocclGetDevices(nullptr, 0, &count), ncclSuccess);
  ASSERT_GE(count, 1);
  std::vector<topocclDevice_t> devices(2);
  devices[1].index = 77;
  ASSERT_EQ(topocclGetDevices(devices.data(), 1, &count), ncclSuccess);
  EXPECT_EQ(devices[0].index, 0);
  EXPECT_EQ(devices[0].kind, topocclDeviceCpu);
  EXPECT_NE(devices[0].name[0], '\0');
  EXPECT_EQ(devices[1].index, 77) << "beyond the capacity";
}

TEST(Entry, ThreadsReadWholeErrorTextsWhileOthersFail) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++) {
    threads.emplace_back([] {
      for (int k = 0; k < 500; k++) {
        ncclGetVersion(nullptr);
        ncclGetUniqueId(nullptr);
        const std::string text = lastError();
        EXPECT_NE(text.find("it must point to where the result goes"), std::string::npos) << text;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Entry, BothLibrariesShareOneState) {
  using GetLastError = const char* (*)(ncclComm_t);
  using GetVersion = ncclResult_t (*)(int*);
  void* nccl = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
  void* topoccl = dlopen("libtopoccl.so.0", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(nccl, nullptr);
  ASSERT_NE(topoccl, nullptr);
  const auto fail = reinterpret_cast<GetVersion>(dlsym(nccl, "pncclGetVersion"));
  const auto read = reinterpret_cast<GetLastError>(dlsym(topoccl, "pncclGetLastError"));
  ASSERT_NE(reinterpret_cast<void*>(fail), dlsym(topoccl, "pncclGetVersion")) << "two symbols";
  ncclMemAlloc(nullptr, 1);
  EXPECT_EQ(fail(nullptr), ncclInvalidArgument);
  EXPECT_NE(std::string(read(nullptr)).find("ncclGetVersion"), std::string::npos);
  dlclose(nccl);
  dlclose(topoccl);
}

}  // namespace
