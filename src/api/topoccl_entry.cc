// The topoccl* functions of topoccl.h.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "api/all_to_all_v.h"
#include "api/announce.h"
#include "api/arguments.h"
#include "api/config.h"
#include "api/guard.h"
#include "communicator/call.h"
#include "communicator/communicator.h"
#include "communicator/host_stream.h"
#include "device/local_devices.h"
#include "topoccl.h"

#define TOPOCCL_EXPORT extern "C" __attribute__((visibility("default")))

namespace topoccl::api {
namespace {

template <size_t Bytes>
void copyText(char (&to)[Bytes], const std::string& from) {
  std::snprintf(to, Bytes, "%s", from.c_str());
}

void checkList(const topocclDevice_t* devices, int capacity, const int* count) {
  checkPointer(count, "count");
  if (capacity < 0) {
    throw Error(Code::InvalidArgument, concat("capacity is ", capacity, "; it must not be negative"));
  }
  if (capacity > 0) checkPointer(devices, "devices");
}

topocclDevice_t toPublic(const LocalDevice& device, int index) {
  topocclDevice_t result{topocclDeviceCpu, index, device.core, {}};
  copyText(result.name, device.name);
  return result;
}

topocclPlan_t toPublic(const CallPlan& plan) {
  topocclPlan_t result{};
  copyText(result.algorithm, plan.algorithm);
  copyText(result.protocol, plan.protocol);
  copyText(result.transport, plan.transport);
  result.channels = plan.channels;
  result.slots = plan.slots;
  result.slotBytes = plan.slotBytes;
  return result;
}

// Of a member; negative: not given.
std::optional<std::chrono::milliseconds> readDeadline(const char* member, double seconds, double least) {
  constexpr double kMost = 7 * 24 * 3600;
  if (seconds < 0) return std::nullopt;
  if (!(seconds >= least && seconds <= kMost))
    throw Error(Code::InvalidArgument,
                concat("deadlines->", member, " is ", seconds, " seconds; it must be in ", least, "..", kMost,
                       ", or negative for the environment's"));
  return std::chrono::milliseconds(static_cast<int64_t>(std::ceil(seconds * 1000)));
}

Deadlines readDeadlines(const topocclDeadlines_t* deadlines) {
  Deadlines result;
  if (deadlines == nullptr) return result;
  if (deadlines->size != sizeof(*deadlines))
    throw Error(Code::InvalidArgument,
                concat("deadlines->size is ", deadlines->size, "; it must be ", sizeof(*deadlines),
                       ", as set by TOPOCCL_DEADLINES_INITIALIZER"));
  result.init = readDeadline("init", deadlines->init, 0.001);
  result.collective = readDeadline("collective", deadlines->collective, 0);
  result.report = readDeadline("report", deadlines->report, 0);
  return result;
}

}  // namespace
}  // namespace topoccl::api

using namespace topoccl;
using namespace topoccl::api;

TOPOCCL_EXPORT ncclResult_t topocclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                                ncclConfig_t* config, const topocclDeadlines_t* deadlines) {
  return guardedInGroup("topocclCommInitRank", [&] {
    checkPointer(comm, "comm");
    checkRankCount(nranks);
    announce(rank);
    CommConfig wanted = readConfig(config);
    wanted.deadlines = readDeadlines(deadlines);
    Communicator::initRank(reinterpret_cast<Communicator**>(comm), nranks, commId.internal, rank, wanted);
  });
}

TOPOCCL_EXPORT const char* topocclGetVersionString(void) {
  return "TopoCCL " TOPOCCL_VERSION " (NCCL 2.32.3 interface)";
}

TOPOCCL_EXPORT ncclResult_t topocclGetDevices(topocclDevice_t* devices, int capacity, int* count) {
  return guarded("topocclGetDevices", [&] {
    checkList(devices, capacity, count);
    const std::vector<LocalDevice> all = localDevices();
    const auto total = static_cast<int>(all.size());
    for (int i = 0; i < std::min(total, capacity); i++) {
      devices[i] = toPublic(all[static_cast<size_t>(i)], i);
    }
    *count = total;
  });
}

TOPOCCL_EXPORT ncclResult_t topocclCommExplain(ncclComm_t comm, const char* collective, size_t count,
                                               ncclDataType_t datatype, topocclPlan_t* plan) {
  return guarded("topocclCommExplain", [&] {
    checkInput(collective, "collective");
    checkPointer(plan, "plan");
    checkCount(count, datatype);
    *plan = toPublic(checkedCommunicator(comm)->explain(collective, count, checkedType(datatype)));
  });
}

TOPOCCL_EXPORT ncclResult_t topocclAllToAllV(const void* sendbuff, const size_t* sendcounts,
                                             const size_t* sdispls, void* recvbuff, const size_t* recvcounts,
                                             const size_t* rdispls, ncclDataType_t datatype, ncclComm_t comm,
                                             cudaStream_t stream) {
  return guardedInGroup("topocclAllToAllV", [&] {
    checkInput(sendcounts, "sendcounts");
    checkInput(sdispls, "sdispls");
    checkInput(recvcounts, "recvcounts");
    checkInput(rdispls, "rdispls");
    exchangeParts({"sendbuff", "sendcounts", "sdispls", sendbuff, sendcounts, sdispls},
                  {"recvbuff", "recvcounts", "rdispls", recvbuff, recvcounts, rdispls}, checkedType(datatype),
                  *checkedCommunicator(comm), stream);
  });
}

TOPOCCL_EXPORT ncclResult_t topocclBarrier(ncclComm_t comm, cudaStream_t stream) {
  return guardedInGroup("topocclBarrier", [&] {
    checkedCommunicator(comm)->collective(CollectiveCall{}, static_cast<int>(ncclSum), stream);
  });
}

TOPOCCL_EXPORT ncclResult_t topocclStreamCreate(cudaStream_t* stream) {
  return guarded("topocclStreamCreate", [&] {
    checkPointer(stream, "stream");
    *stream = static_cast<cudaStream_t>(createStream());
  });
}

TOPOCCL_EXPORT ncclResult_t topocclStreamSynchronize(cudaStream_t stream) {
  return guarded("topocclStreamSynchronize", [&] { streamOf(stream)->synchronize(); });
}

TOPOCCL_EXPORT ncclResult_t topocclStreamQuery(cudaStream_t stream) {
  return guarded("topocclStreamQuery", [&] { streamOf(stream)->query(); });
}

TOPOCCL_EXPORT ncclResult_t topocclStreamDestroy(cudaStream_t stream) {
  return guarded("topocclStreamDestroy", [&] { destroyStream(stream); });
}
