/* Prints "NAME VALUE" for everything in nccl.h that a compiled program depends on. */
#include <stddef.h>
#include <stdio.h>

#include <nccl.h>

#define FACT(name) printf("%s %lld\n", #name, (long long)(name))
#define MEMBER(name) printf("config.%s %zu\n", #name, offsetof(ncclConfig_t, name))
/* Of the initializer: what "not set" looks like. */
#define UNSET(name) printf("unset.%s %lld\n", #name, (long long)config.name)

static void results(void) {
  FACT(ncclSuccess), FACT(ncclUnhandledCudaError), FACT(ncclSystemError), FACT(ncclInternalError);
  FACT(ncclInvalidArgument), FACT(ncclInvalidUsage), FACT(ncclRemoteError), FACT(ncclInProgress);
#if NCCL_VERSION_CODE >= 23003
  FACT(ncclTimeout);
#endif
  FACT(sizeof(ncclResult_t));
}

static void types(void) {
  FACT(ncclInt8), FACT(ncclChar), FACT(ncclUint8), FACT(ncclInt32), FACT(ncclInt), FACT(ncclUint32);
  FACT(ncclInt64), FACT(ncclUint64), FACT(ncclFloat16), FACT(ncclHalf), FACT(ncclFloat32), FACT(ncclFloat);
  FACT(ncclFloat64), FACT(ncclDouble), FACT(ncclBfloat16);
#if NCCL_VERSION_CODE >= 22400
  FACT(ncclFloat8e4m3), FACT(ncclFloat8e5m2), FACT(ncclNumTypes);
#endif
  FACT(sizeof(ncclDataType_t));
  FACT(ncclSum), FACT(ncclProd), FACT(ncclMax), FACT(ncclMin), FACT(ncclAvg), FACT(ncclNumOps);
  FACT(ncclMaxRedOp), FACT(sizeof(ncclRedOp_t));
  FACT(ncclScalarDevice), FACT(ncclScalarHostImmediate), FACT(sizeof(ncclScalarResidence_t));
}

static void constants(void) {
  FACT(NCCL_UNIQUE_ID_BYTES), FACT(sizeof(ncclUniqueId)), FACT(NCCL_CONFIG_UNDEF_INT);
  FACT((size_t)NCCL_CONFIG_UNDEF_PTR), FACT(NCCL_SPLIT_NOCOLOR), FACT(NCCL_UNDEF_FLOAT);
#if NCCL_VERSION_CODE >= 22800
  FACT(NCCL_WIN_DEFAULT), FACT(NCCL_WIN_COLL_SYMMETRIC), FACT(NCCL_WIN_REQUIRED_ALIGNMENT);
  FACT(NCCL_CTA_POLICY_DEFAULT), FACT(NCCL_CTA_POLICY_EFFICIENCY);
  FACT(NCCL_SHRINK_DEFAULT), FACT(NCCL_SHRINK_ABORT);
#endif
#if NCCL_VERSION_CODE >= 23200
  FACT(NCCL_API_MAGIC), FACT(NCCL_WIN_STRICT_ORDERING), FACT(NCCL_WIN_GIN_ONLY), FACT(NCCL_WIN_CFT_COUNTED);
  FACT(NCCL_CTA_POLICY_ZERO), FACT(NCCL_REVOKE_DEFAULT), FACT(NCCL_SUSPEND_MEM);
  FACT(ncclStatGpuMemSuspend), FACT(ncclStatGpuMemSuspended), FACT(ncclStatGpuMemPersist);
  FACT(ncclStatGpuMemTotal), FACT(ncclHostCftDefault), FACT(ncclHostCftEnable), FACT(ncclHostCftDisable);
  FACT(ncclHostCftFallback), FACT(ncclNvlsHostModeDefault), FACT(ncclNvlsHostModeEnable);
  FACT(ncclNvlsHostModeDisableTransport), FACT(ncclNvlsHostModeDisableSymmetricMultimem);
  FACT(ncclNvlsHostModeDisable);
#endif
}

static void configuration(void) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  MEMBER(size), MEMBER(magic), MEMBER(version), MEMBER(blocking), MEMBER(cgaClusterSize), MEMBER(minCTAs);
  MEMBER(maxCTAs), MEMBER(netName), MEMBER(splitShare), UNSET(magic), UNSET(blocking), UNSET(cgaClusterSize);
  UNSET(minCTAs), UNSET(maxCTAs), UNSET(netName), UNSET(splitShare);
#if NCCL_VERSION_CODE >= 22800
  MEMBER(trafficClass), MEMBER(commName), MEMBER(collnetEnable), MEMBER(CTAPolicy), MEMBER(shrinkShare);
  MEMBER(nvlsCTAs), MEMBER(nChannelsPerNetPeer), MEMBER(nvlinkCentricSched), UNSET(trafficClass);
  UNSET(commName), UNSET(collnetEnable), UNSET(CTAPolicy), UNSET(shrinkShare), UNSET(nvlsCTAs);
  UNSET(nChannelsPerNetPeer), UNSET(nvlinkCentricSched);
#endif
#if NCCL_VERSION_CODE >= 23200
  MEMBER(graphUsageMode), MEMBER(numRmaCtx), MEMBER(maxP2pPeers), MEMBER(graphStreamOrdering);
  MEMBER(launchOrderImplicit), MEMBER(numRmaSig), MEMBER(rmaEagerInit), MEMBER(hostCftMode);
  MEMBER(nvlsHostMode), FACT(sizeof(ncclConfig_t)), FACT(NCCL_VERSION_CODE), UNSET(graphUsageMode);
  UNSET(numRmaCtx), UNSET(maxP2pPeers), UNSET(graphStreamOrdering), UNSET(launchOrderImplicit);
  UNSET(numRmaSig), UNSET(rmaEagerInit), UNSET(hostCftMode), UNSET(nvlsHostMode);
#endif
}

int main(void) {
  results();
  types();
  constants();
  configuration();
  return 0;
}
