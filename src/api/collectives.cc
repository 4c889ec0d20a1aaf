// The calls that move data.
#include "api/arguments.h"
#include "api/entry.h"
#include "api/guard.h"
#include "communicator/call.h"
#include "communicator/communicator.h"

namespace topoccl::api {
namespace {

constexpr ncclRedOp_t kNoOp = ncclSum;

// The arguments that all collectives share, checked.
CollectiveCall callOf(Collective collective, const void* sendbuff, void* recvbuff, size_t count,
                      ncclDataType_t datatype, int root = -1) {
  CollectiveCall call;
  call.collective = collective;
  call.send = sendbuff;
  call.receive = recvbuff;
  call.count = count;
  call.type = checkedType(datatype);
  call.root = root;
  return call;
}

ncclResult_t run(const char* function, Collective collective, const void* sendbuff, void* recvbuff,
                 size_t count, ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
                 cudaStream_t stream) {
  return guardedInGroup(function, [&] {
    Communicator* communicator = checkedCommunicator(comm);
    communicator->collective(callOf(collective, sendbuff, recvbuff, count, datatype, root),
                             static_cast<int>(op), stream);
  });
}

ncclResult_t exchange(const char* function, const char* argument, bool sends, void* buffer, size_t count,
                      ncclDataType_t datatype, int peer, ncclComm_t comm, cudaStream_t stream) {
  return guardedInGroup(function, [&] {
    Communicator* communicator = checkedCommunicator(comm);
    checkBuffer(buffer, count, datatype, argument);
    communicator->peerCall({sends, peer, buffer, count, checkedType(datatype)}, stream);
  });
}

}  // namespace

ncclResult_t allReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                       ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return run("ncclAllReduce", Collective::AllReduce, sendbuff, recvbuff, count, datatype, op, -1, comm,
             stream);
}

ncclResult_t broadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                       ncclComm_t comm, cudaStream_t stream) {
  return run("ncclBroadcast", Collective::Broadcast, sendbuff, recvbuff, count, datatype, kNoOp, root, comm,
             stream);
}

ncclResult_t bcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                   cudaStream_t stream) {
  return guardedInGroup("ncclBcast", [&] {
    Communicator* communicator = checkedCommunicator(comm);
    const CollectiveCall call = callOf(Collective::Broadcast, buff, buff, count, datatype, root);
    checkBuffer(buff, count, datatype, "buff");  // which is no sendbuff
    communicator->collective(call, static_cast<int>(kNoOp), stream);
  });
}

ncclResult_t reduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                    ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return run("ncclReduce", Collective::Reduce, sendbuff, recvbuff, count, datatype, op, root, comm, stream);
}

ncclResult_t allGather(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                       ncclComm_t comm, cudaStream_t stream) {
  return run("ncclAllGather", Collective::AllGather, sendbuff, recvbuff, sendcount, datatype, kNoOp, -1, comm,
             stream);
}

ncclResult_t reduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return run("ncclReduceScatter", Collective::ReduceScatter, sendbuff, recvbuff, recvcount, datatype, op, -1,
             comm, stream);
}

ncclResult_t gather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                    ncclComm_t comm, cudaStream_t stream) {
  return run("ncclGather", Collective::Gather, sendbuff, recvbuff, count, datatype, kNoOp, root, comm,
             stream);
}

ncclResult_t scatter(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                     ncclComm_t comm, cudaStream_t stream) {
  return run("ncclScatter", Collective::Scatter, sendbuff, recvbuff, count, datatype, kNoOp, root, comm,
             stream);
}

ncclResult_t allToAll(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                      ncclComm_t comm, cudaStream_t stream) {
  return run("ncclAlltoAll", Collective::AllToAll, sendbuff, recvbuff, count, datatype, kNoOp, -1, comm,
             stream);
}

ncclResult_t send(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                  cudaStream_t stream) {
  return exchange("ncclSend", "sendbuff", true, const_cast<void*>(sendbuff), count, datatype, peer, comm,
                  stream);
}

ncclResult_t recv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                  cudaStream_t stream) {
  return exchange("ncclRecv", "recvbuff", false, recvbuff, count, datatype, peer, comm, stream);
}

ncclResult_t redOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
                                  ncclScalarResidence_t residence, ncclComm_t comm) {
  return guarded("ncclRedOpCreatePreMulSum", [&] {
    checkPointer(op, "op");
    checkInput(scalar, "scalar");
    Communicator* communicator = checkedCommunicator(comm);
    const bool deferred = isReadAtEachCall(static_cast<int>(residence));
    *op = static_cast<ncclRedOp_t>(communicator->createScaledSum(checkedType(datatype), scalar, deferred));
  });
}

ncclResult_t redOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  return guarded("ncclRedOpDestroy",
                 [&] { checkedCommunicator(comm)->destroyOperator(static_cast<int>(op)); });
}

}  // namespace topoccl::api
