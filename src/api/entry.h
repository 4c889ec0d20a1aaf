// The C boundary: one function per function of nccl.h and topoccl.h, with the same parameters. They check
// pointers and ranges, turn exceptions into result codes and last-error text, and call `communicator`.
//
// libtopoccl.so exports them; the nccl*/pnccl* symbols of both shared libraries only forward to them, so
// that a process with both libraries has one copy of the state. Any thread may call them.
#pragma once

#include "nccl.h"
#include "topoccl.h"

namespace topoccl::api {

#pragma GCC visibility push(default)

ncclResult_t getVersion(int* version);
const char* getErrorString(ncclResult_t result);
const char* getLastError(ncclComm_t comm);

ncclResult_t getUniqueId(ncclUniqueId* uniqueId);
ncclResult_t commInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank);
ncclResult_t commInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                ncclConfig_t* config);
ncclResult_t commInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds,
                                  ncclConfig_t* config);
ncclResult_t commSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config);
ncclResult_t commShrink(ncclComm_t comm, const int* excludeRanksList, int excludeRanksCount,
                        ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags);
ncclResult_t commRegister(ncclComm_t comm, void* buff, size_t size, void** handle);
ncclResult_t commDeregister(ncclComm_t comm, void* handle);
ncclResult_t commInitAll(ncclComm_t* comm, int ndev, const int* devlist);
ncclResult_t commFinalize(ncclComm_t comm);
ncclResult_t commDestroy(ncclComm_t comm);
ncclResult_t commAbort(ncclComm_t comm);
ncclResult_t commGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError);
ncclResult_t commCount(ncclComm_t comm, int* count);
ncclResult_t commCuDevice(ncclComm_t comm, int* device);
ncclResult_t commUserRank(ncclComm_t comm, int* rank);

ncclResult_t allReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                       ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);

ncclResult_t broadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                       ncclComm_t comm, cudaStream_t stream);
ncclResult_t bcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                   cudaStream_t stream);
ncclResult_t reduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                    ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t allGather(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                       ncclComm_t comm, cudaStream_t stream);
ncclResult_t reduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t gather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                    ncclComm_t comm, cudaStream_t stream);
ncclResult_t scatter(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                     ncclComm_t comm, cudaStream_t stream);
ncclResult_t allToAll(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                      ncclComm_t comm, cudaStream_t stream);
ncclResult_t send(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                  cudaStream_t stream);
ncclResult_t recv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                  cudaStream_t stream);

ncclResult_t redOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
                                  ncclScalarResidence_t residence, ncclComm_t comm);
ncclResult_t redOpDestroy(ncclRedOp_t op, ncclComm_t comm);

ncclResult_t groupStart();
ncclResult_t groupEnd();
ncclResult_t memAlloc(void** ptr, size_t size);
ncclResult_t memFree(void* ptr);

#pragma GCC visibility pop

}  // namespace topoccl::api
