// The topoccl* functions of topoccl.h.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "api/arguments.h"
#include "api/guard.h"
#include "communicator/communicator.h"
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

}  // namespace
}  // namespace topoccl::api

using namespace topoccl;
using namespace topoccl::api;

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
    checkPointer(collective, "collective");
    checkPointer(plan, "plan");
    checkCount(count, datatype);
    *plan = toPublic(checkedCommunicator(comm)->explain(collective, count, checkedType(datatype)));
  });
}
