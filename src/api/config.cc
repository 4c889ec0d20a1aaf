#include "api/config.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "base/error.h"

namespace topoccl::api {
namespace {

// Members arrived in groups, always at the end. `size` alone does not tell where a caller's structure ends:
// padding after the last member of an old one covers the first member of the next version.
struct Growth {
  unsigned version;  // first version with the members from `offset` on
  size_t offset;
};
constexpr Growth kGrowth[] = {
    {21400, offsetof(ncclConfig_t, blocking)},
    {21700, offsetof(ncclConfig_t, cgaClusterSize)},
    {21800, offsetof(ncclConfig_t, splitShare)},
    {22600, offsetof(ncclConfig_t, trafficClass)},
    {22700, offsetof(ncclConfig_t, commName)},
    {22800, offsetof(ncclConfig_t, nChannelsPerNetPeer)},
    {22900, offsetof(ncclConfig_t, graphUsageMode)},
    {23003, offsetof(ncclConfig_t, maxP2pPeers)},
    {23005, offsetof(ncclConfig_t, graphStreamOrdering)},
    {23100, offsetof(ncclConfig_t, launchOrderImplicit)},
    {23200, offsetof(ncclConfig_t, nvlsHostMode)},
};
constexpr size_t kHeaderBytes = offsetof(ncclConfig_t, blocking);

size_t bytesKnownTo(unsigned version) {
  for (const Growth& growth : kGrowth) {
    if (version < growth.version) return growth.offset;
  }
  return sizeof(ncclConfig_t);
}

[[noreturn]] void reject(const std::string& message) {
  throw Error(Code::InvalidArgument, message);
}

void checkHeader(const ncclConfig_t& config) {
  if (config.size < kHeaderBytes) {
    reject(concat("config->size is ", config.size, "; it must be at least ", kHeaderBytes,
                  ": start from NCCL_CONFIG_INITIALIZER"));
  }
  if (config.magic != NCCL_API_MAGIC) {
    TextStream text;
    text << "config->magic is 0x" << std::hex << config.magic << "; it must be 0x" << NCCL_API_MAGIC
         << ": start from NCCL_CONFIG_INITIALIZER";
    reject(text.str());
  }
}

// The caller's structure in our layout, "not set" where the caller's header had no such member.
ncclConfig_t inOurLayout(const ncclConfig_t* config) {
  ncclConfig_t ours = NCCL_CONFIG_INITIALIZER;
  size_t size = 0;
  std::memcpy(&size, config, sizeof size);
  std::memcpy(&ours, config, std::clamp(size, sizeof size, kHeaderBytes));
  checkHeader(ours);
  // Every structure ends on such a boundary, so that none is cut within a pointer.
  const size_t whole = size / alignof(ncclConfig_t) * alignof(ncclConfig_t);
  std::memcpy(&ours, config, std::min({whole, sizeof ours, bytesKnownTo(ours.version)}));
  return ours;
}

int channelBound(int value, const char* member) {
  if (value == NCCL_CONFIG_UNDEF_INT) return 0;
  if (value < 1) reject(concat("config->", member, " is ", value, "; it must be at least 1"));
  return value;
}

int blockingMode(int value) {
  if (value == NCCL_CONFIG_UNDEF_INT) return 1;
  if (value != 0 && value != 1) reject(concat("config->blocking is ", value, "; it must be 0 or 1"));
  return value;
}

}  // namespace

CommConfig readConfig(const ncclConfig_t* config) {
  CommConfig result;
  if (config == nullptr) return result;
  const ncclConfig_t ours = inOurLayout(config);
  result.blocking = blockingMode(ours.blocking);
  result.minChannels = channelBound(ours.minCTAs, "minCTAs");
  result.maxChannels = channelBound(ours.maxCTAs, "maxCTAs");
  if (result.maxChannels != 0 && result.minChannels > result.maxChannels) {
    reject(concat("config->minCTAs is ", result.minChannels,
                  "; it must be at most config->maxCTAs, which is ", result.maxChannels));
  }
  if (ours.commName != nullptr) result.name = ours.commName;
  return result;
}

}  // namespace topoccl::api
