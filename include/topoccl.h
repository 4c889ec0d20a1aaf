/* topoccl.h: what this library offers beyond nccl.h: devices of this host, plans of collectives, two more
 * collectives, and streams for ranks on CPUs.
 *
 * C99 and C++. Same conventions as nccl.h: results are ncclResult_t, ncclGetLastError() explains errors.
 * Structures may grow until version 1.0: build against the header of the library you run.
 */
#ifndef TOPOCCL_H
#define TOPOCCL_H

#include <stddef.h>

#include "nccl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "TopoCCL 0.1.0 (NCCL 2.32.3 interface)". Static text, never NULL. */
const char* topocclGetVersionString(void);

/* How long a communicator waits, in seconds. Negative: as the environment says. */
typedef struct {
  size_t size;       /* of this structure */
  double init;       /* init, and splits and shrinks of it, for other ranks (TOPOCCL_INIT_TIMEOUT); not 0 */
  double collective; /* a call that doesn't move, until it fails (TOPOCCL_COLLECTIVE_TIMEOUT); 0: for ever */
  double report;     /* until one report says who waits for whom (TOPOCCL_REPORT_AFTER); 0: never */
} topocclDeadlines_t;

#define TOPOCCL_DEADLINES_INITIALIZER \
  { sizeof(topocclDeadlines_t), -1.0, -1.0, -1.0 }

/* As ncclCommInitRankConfig, with deadlines of its own; config and deadlines may be NULL. Communicators that
 * are made of this one inherit them. Ranks may have different ones. Errors: additionally ncclInvalidArgument
 * for deadlines that are not made by TOPOCCL_DEADLINES_INITIALIZER or out of range (up to a week). */
ncclResult_t topocclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                 ncclConfig_t* config, const topocclDeadlines_t* deadlines);

typedef enum {
  topocclDeviceCpu = 0, /* one CPU core */
  topocclDeviceCuda = 1 /* one GPU */
} topocclDeviceKind_t;

/* Something a rank can compute on. */
typedef struct {
  topocclDeviceKind_t kind;
  int index;      /* position in the list of topocclGetDevices */
  int systemId;   /* the operating system's number: of the core, or of the GPU */
  char name[112]; /* processor or GPU model, cut to fit */
} topocclDevice_t;

/* Lists the devices that this process may use: CPU cores in its affinity mask, ascending. Writes the first
 * `capacity` of them to `devices` and the number of all of them to *count; devices may be NULL if capacity
 * is 0. Errors: ncclInvalidArgument (count NULL, capacity < 0, devices NULL although capacity > 0). */
ncclResult_t topocclGetDevices(topocclDevice_t* devices, int capacity, int* count);

/* How a collective of a given size would run. */
typedef struct {
  char algorithm[32]; /* as NCCL_ALGO names it: "ring", "tree", "mesh_oneshot", ...; p2p for a send */
  char protocol[16];  /* "bulk" or "packet" */
  char transport[64]; /* the transports in use, joined by '+': "shm", "in-process", ... */
  int channels;       /* parallel instances of the algorithm */
  int slots;          /* slots of one connection */
  size_t slotBytes;   /* payload bytes of one slot */
} topocclPlan_t;

/* Describes how comm would run a collective with `count` elements of `datatype`, without running it. Local:
 * no other rank takes part. collective: "all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter",
 * "gather", "scatter", "all_to_all" (with root 0 where there is one; count as the call takes it), or
 * "send_recv" for a send to the next rank; also in NCCL's spelling, as in "AllReduce".
 * Errors: ncclInvalidArgument (a dead communicator, NULL, an unknown name, a datatype or count that
 * the collective would refuse). */
ncclResult_t topocclCommExplain(ncclComm_t comm, const char* collective, size_t count,
                                ncclDataType_t datatype, topocclPlan_t* plan);

/* All-to-all with a size of its own for every pair: sends sendcounts[r] elements from sendbuff + sdispls[r]
 * to rank r, and receives recvcounts[r] elements from it at recvbuff + rdispls[r]. Four arrays of as many
 * entries as there are ranks, in elements; recvcounts[r] equals rank r's sendcounts for this rank. A buffer
 * may be NULL where all its counts are 0; a part that is received must not overlap any other. Runs as a group
 * of ncclSend and ncclRecv, with their order and errors; where an argument is wrong, nothing of it runs. */
ncclResult_t topocclAllToAllV(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls,
                              void* recvbuff, const size_t* recvcounts, const size_t* rdispls,
                              ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);

/* Returns on every rank when all have called it. Runs as an all-reduce of no elements, and is numbered like
 * one. On a host stream it returns at once, and all have called it when the stream has come there. */
ncclResult_t topocclBarrier(ncclComm_t comm, cudaStream_t stream);

/* Host streams: what a CUDA stream is to ranks on GPUs, for ranks on CPUs. A call of nccl.h or of this header
 * with a host stream as its `stream` returns at once; a thread of the stream runs it while the caller goes
 * on. Until then its buffers are the library's. Calls on one stream run in the order in which they were
 * issued, and so do calls on one communicator, on whatever streams, or with stream NULL: such a call waits
 * for those before it. Different streams run side by side. What goes wrong later is the communicator's
 * asynchronous error (ncclCommGetAsyncError), and the result of the stream's next synchronization.
 * ncclCommFinalize and ncclCommDestroy wait for what was issued; ncclCommAbort ends it.
 *
 * Calls of a group that share a communicator or a stream run together, when all that was issued before on any
 * of their communicators and streams has ended; if one of them has stream NULL, ncclGroupEnd returns when
 * they have. An error of one is an error of all their streams.
 *
 *   topocclStreamCreate(&stream);
 *   ncclAllReduce(gradients, gradients, count, ncclFloat, ncclSum, comm, stream);
 *   ... compute something else ...
 *   topocclStreamSynchronize(stream);   -- the sums are there
 *
 * Any thread may call these functions. Handles are no pointers; one that was destroyed, or never was a host
 * stream, gives ncclInvalidArgument; in a process that was forked, its parent's give ncclInvalidUsage. */

/* Makes a stream, and its thread. Errors: ncclInvalidArgument (stream NULL), ncclSystemError (no thread). */
ncclResult_t topocclStreamCreate(cudaStream_t* stream);

/* Returns when all that was issued on the stream before has ended. Its result is that of the first call on
 * the stream that failed since the last synchronization; ncclGetLastError tells of it. All threads that wait
 * at the same time get it. */
ncclResult_t topocclStreamSynchronize(cudaStream_t stream);

/* ncclInProgress while the stream has something to run; then what topocclStreamSynchronize would return,
 * without forgetting it. */
ncclResult_t topocclStreamQuery(cudaStream_t stream);

/* Ends the handle at once. What was issued on it still runs; then its thread ends. */
ncclResult_t topocclStreamDestroy(cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif /* TOPOCCL_H */
