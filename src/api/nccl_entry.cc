// The nccl* and pnccl* symbols, compiled into libtopoccl.so and libnccl.so.2. They hold no state and no
// logic: each forwards to its function of the seam.
#include "api/entry.h"
#include "nccl.h"

namespace api = topoccl::api;

// pncclNAME is the function; ncclNAME a weak alias, so that a profiler's own ncclNAME wins at link time.
#define TOPOCCL_ENTRY(result, name, parameters, call)                               \
  extern "C" __attribute__((visibility("default"))) result pnccl##name parameters { \
    return api::call;                                                               \
  }                                                                                 \
  extern "C" __attribute__((visibility("default"), weak, alias("pnccl" #name))) result nccl##name parameters;

TOPOCCL_ENTRY(ncclResult_t, GetVersion, (int* version), getVersion(version))
TOPOCCL_ENTRY(const char*, GetErrorString, (ncclResult_t result), getErrorString(result))
TOPOCCL_ENTRY(const char*, GetLastError, (ncclComm_t comm), getLastError(comm))
TOPOCCL_ENTRY(ncclResult_t, GetUniqueId, (ncclUniqueId * id), getUniqueId(id))
TOPOCCL_ENTRY(ncclResult_t, CommInitRank, (ncclComm_t * comm, int nranks, ncclUniqueId id, int rank),
              commInitRank(comm, nranks, id, rank))
TOPOCCL_ENTRY(ncclResult_t, CommInitRankConfig,
              (ncclComm_t * comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t* config),
              commInitRankConfig(comm, nranks, id, rank, config))
TOPOCCL_ENTRY(ncclResult_t, CommInitRankScalable,
              (ncclComm_t * newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds,
               ncclConfig_t* config),
              commInitRankScalable(newcomm, nranks, myrank, nId, commIds, config))
TOPOCCL_ENTRY(ncclResult_t, CommSplit,
              (ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config),
              commSplit(comm, color, key, newcomm, config))
TOPOCCL_ENTRY(ncclResult_t, CommShrink,
              (ncclComm_t comm, int* excludeRanksList, int excludeRanksCount, ncclComm_t* newcomm,
               ncclConfig_t* config, int shrinkFlags),
              commShrink(comm, excludeRanksList, excludeRanksCount, newcomm, config, shrinkFlags))
TOPOCCL_ENTRY(ncclResult_t, CommRegister, (const ncclComm_t comm, void* buff, size_t size, void** handle),
              commRegister(comm, buff, size, handle))
TOPOCCL_ENTRY(ncclResult_t, CommDeregister, (const ncclComm_t comm, void* handle),
              commDeregister(comm, handle))
TOPOCCL_ENTRY(ncclResult_t, CommInitAll, (ncclComm_t * comm, int ndev, const int* devlist),
              commInitAll(comm, ndev, devlist))
TOPOCCL_ENTRY(ncclResult_t, CommFinalize, (ncclComm_t comm), commFinalize(comm))
TOPOCCL_ENTRY(ncclResult_t, CommDestroy, (ncclComm_t comm), commDestroy(comm))
TOPOCCL_ENTRY(ncclResult_t, CommAbort, (ncclComm_t comm), commAbort(comm))
TOPOCCL_ENTRY(ncclResult_t, CommGetAsyncError, (ncclComm_t comm, ncclResult_t* asyncError),
              commGetAsyncError(comm, asyncError))
TOPOCCL_ENTRY(ncclResult_t, CommCount, (const ncclComm_t comm, int* count), commCount(comm, count))
TOPOCCL_ENTRY(ncclResult_t, CommCuDevice, (const ncclComm_t comm, int* device), commCuDevice(comm, device))
TOPOCCL_ENTRY(ncclResult_t, CommUserRank, (const ncclComm_t comm, int* rank), commUserRank(comm, rank))
TOPOCCL_ENTRY(ncclResult_t, AllReduce,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
               ncclComm_t comm, cudaStream_t stream),
              allReduce(sendbuff, recvbuff, count, datatype, op, comm, stream))
TOPOCCL_ENTRY(ncclResult_t, Broadcast,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
               ncclComm_t comm, cudaStream_t stream),
              broadcast(sendbuff, recvbuff, count, datatype, root, comm, stream))
TOPOCCL_ENTRY(ncclResult_t, Bcast,
              (void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
               cudaStream_t stream),
              bcast(buff, count, datatype, root, comm, stream))
TOPOCCL_ENTRY(ncclResult_t, Reduce,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
               int root, ncclComm_t comm, cudaStream_t stream),
              reduce(sendbuff, recvbuff, count, datatype, op, root, comm, stream))
TOPOCCL_ENTRY(ncclResult_t, AllGather,
              (const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
               ncclComm_t comm, cudaStream_t stream),
              allGather(sendbuff, recvbuff, sendcount, datatype, comm, stream))
TOPOCCL_ENTRY(ncclResult_t, ReduceScatter,
              (const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype,
               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream),
              reduceScatter(sendbuff, recvbuff, recvcount, datatype, op, comm, stream))
TOPOCCL_ENTRY(ncclResult_t, Gather,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
               ncclComm_t comm, cudaStream_t stream),
              gather(sendbuff, recvbuff, count, datatype, root, comm, stream))
TOPOCCL_ENTRY(ncclResult_t, Scatter,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
               ncclComm_t comm, cudaStream_t stream),
              scatter(sendbuff, recvbuff, count, datatype, root, comm, stream))
TOPOCCL_ENTRY(ncclResult_t, AlltoAll,
              (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,
               cudaStream_t stream),
              allToAll(sendbuff, recvbuff, count, datatype, comm, stream))
TOPOCCL_ENTRY(ncclResult_t, Send,
              (const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
               cudaStream_t stream),
              send(sendbuff, count, datatype, peer, comm, stream))
TOPOCCL_ENTRY(ncclResult_t, Recv,
              (void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
               cudaStream_t stream),
              recv(recvbuff, count, datatype, peer, comm, stream))
TOPOCCL_ENTRY(ncclResult_t, RedOpCreatePreMulSum,
              (ncclRedOp_t * op, void* scalar, ncclDataType_t datatype, ncclScalarResidence_t residence,
               ncclComm_t comm),
              redOpCreatePreMulSum(op, scalar, datatype, residence, comm))
TOPOCCL_ENTRY(ncclResult_t, RedOpDestroy, (ncclRedOp_t op, ncclComm_t comm), redOpDestroy(op, comm))
TOPOCCL_ENTRY(ncclResult_t, GroupStart, (), groupStart())
TOPOCCL_ENTRY(ncclResult_t, GroupEnd, (), groupEnd())
TOPOCCL_ENTRY(ncclResult_t, MemAlloc, (void** ptr, size_t size), memAlloc(ptr, size))
TOPOCCL_ENTRY(ncclResult_t, MemFree, (void* ptr), memFree(ptr))
