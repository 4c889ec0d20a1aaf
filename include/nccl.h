/* nccl.h: collective communication with NCCL's C interface, for CPU ranks and GPUs.
 *
 * Binary compatible with NCCL 2.32: a program built against NVIDIA's nccl.h of that version or an earlier
 * one runs on this library unchanged, and the other way round. Only the functions declared here exist.
 *
 * With the CUDA toolkit in the include path this header includes <cuda_runtime.h>; without it, or with
 * TOPOCCL_NO_CUDA defined, it declares `cudaStream_t` itself (including <cuda_runtime.h> later still works).
 *
 * Conventions
 * - A communicator connects `nranks` ranks, numbered from 0. A handle belongs to one rank; use it from one
 *   thread at a time. Different handles may be used from different threads.
 * - Counts are in elements of the data type, never in bytes.
 * - Buffers of CPU ranks are ordinary memory. On CPU ranks a NULL stream means: return when done. Another
 *   stream must be a host stream (topoccl.h).
 * - Every function returns ncclSuccess or an error; ncclGetLastError() then says what was wrong and with
 *   which value. Outputs are written on success only, except where the text says otherwise.
 * - Every function has a twin with the prefix `pnccl`. `nccl*` symbols are weak, so a profiler may define
 *   its own and call the twin.
 */
#ifndef TOPOCCL_NCCL_H
#define TOPOCCL_NCCL_H
/* NVIDIA's guard: whoever includes both headers gets the first one only. */
#ifndef NCCL_H_
#define NCCL_H_

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#if !defined(TOPOCCL_NO_CUDA) && defined(__has_include)
#if __has_include(<cuda_runtime.h>)
#define TOPOCCL_CUDA_HEADERS 1
#endif
#endif

#ifdef TOPOCCL_CUDA_HEADERS
#include <cuda_runtime.h>
/* Programs written for NCCL get the 16-bit float types through its header. */
#if __has_include(<cuda_fp16.h>)
#include <cuda_fp16.h>
#endif
#if __has_include(<cuda_bf16.h>)
#include <cuda_bf16.h>
#endif
#else
struct CUstream_st;
typedef struct CUstream_st* cudaStream_t;
#endif

/* -- Version ---------------------------------------------------------------------------------------- */

/* The NCCL version whose interface this is. */
#define NCCL_MAJOR 2
#define NCCL_MINOR 32
#define NCCL_PATCH 3
#define NCCL_SUFFIX ""

/* Versions up to 2.8 were coded with three digits after the major number, later ones with four. */
#define NCCL_VERSION(X, Y, Z) (((X) <= 2 && (Y) <= 8) ? (X)*1000 + (Y)*100 + (Z) : (X)*10000 + (Y)*100 + (Z))
#define NCCL_VERSION_CODE 23203

#ifdef __cplusplus
extern "C" {
#endif

/* -- Values ----------------------------------------------------------------------------------------- */

/* What a call returns. Host calls return at most ncclInProgress. */
typedef enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1, /* a CUDA call failed */
  ncclSystemError = 2,        /* the operating system refused something: memory, sockets, files */
  ncclInternalError = 3,      /* a defect of this library */
  ncclInvalidArgument = 4,    /* an argument is wrong by itself: a NULL pointer, a rank out of range */
  ncclInvalidUsage = 5,       /* arguments or calls do not fit each other, or something is not supported */
  ncclRemoteError = 6,        /* another rank died or the connection to it broke */
  ncclInProgress = 7,         /* non-blocking communicators: not done yet, ask ncclCommGetAsyncError */
  ncclTimeout = 8,            /* not returned here: deadlines are ncclRemoteError, which names who was late */
  ncclNumResults = 9
} ncclResult_t;

/* Element types. Aliases (ncclChar, ncclInt, ncclHalf, ncclFloat, ncclDouble) have the same value. */
typedef enum {
  ncclInt8 = 0,
  ncclChar = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclInt = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclHalf = 6,
  ncclFloat32 = 7,
  ncclFloat = 7,
  ncclFloat64 = 8,
  ncclDouble = 8,
  ncclBfloat16 = 9,
  ncclFloat8e4m3 = 10,
  ncclFloat8e5m2 = 11,
  ncclNumTypes = 12
} ncclDataType_t;

/* Reductions. Values from ncclNumOps to ncclMaxRedOp name operators that a program created. */
typedef enum { ncclNumOps_dummy = 5 } ncclRedOp_dummy_t;
typedef enum {
  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
  ncclAvg = 4, /* sum divided by the number of ranks; integers truncate */
  ncclNumOps = 5,
  ncclMaxRedOp = 0x7fffffff >> (32 - 8 * sizeof(ncclRedOp_dummy_t))
} ncclRedOp_t;

/* Where the scalar of a created operator lives and when it is read. */
typedef enum {
  ncclScalarDevice = 0,       /* device memory, read while the collective runs */
  ncclScalarHostImmediate = 1 /* host memory, read before the creating call returns */
} ncclScalarResidence_t;

typedef enum {
  ncclStatGpuMemSuspend = 0,   /* bytes that suspending would release */
  ncclStatGpuMemSuspended = 1, /* 1 while suspended */
  ncclStatGpuMemPersist = 2,   /* bytes that stay */
  ncclStatGpuMemTotal = 3      /* bytes in all */
} ncclCommMemStat_t;

/* A communicator of one rank. Opaque. */
typedef struct ncclComm* ncclComm_t;
#define NCCL_COMM_NULL NULL

/* Memory registered for one-sided access. Opaque. */
typedef struct ncclWindow_vidmem* ncclWindow_t;

/* Names a communicator to be. Opaque bytes; copy them to every rank by any means. They contain a secret
 * with which ranks recognise each other, so hand them over privately. */
#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
  char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

/* "Not set" in configurations. */
#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_UNDEF_FLOAT -1.0f
/* First word of a structure made by its initializer. */
#define NCCL_API_MAGIC 0xcafebeef

#define NCCL_SPLIT_NOCOLOR -1

/* Flags of ncclCommShrink. */
#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT 0x01
#define NCCL_REVOKE_DEFAULT 0x00
#define NCCL_SUSPEND_MEM 0x01

/* Window registration. */
#define NCCL_WIN_DEFAULT 0x00
#define NCCL_WIN_COLL_SYMMETRIC 0x01
#define NCCL_WIN_STRICT_ORDERING 0x02
#define NCCL_WIN_GIN_ONLY 0x04
#define NCCL_WIN_CFT_COUNTED 0x08
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096

/* ncclConfig_t.CTAPolicy, a bit mask. */
#define NCCL_CTA_POLICY_DEFAULT 0x00
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_CTA_POLICY_ZERO 0x02

/* ncclConfig_t.hostCftMode */
typedef enum {
  ncclHostCftDefault = NCCL_CONFIG_UNDEF_INT,
  ncclHostCftEnable = 1,
  ncclHostCftDisable = 2,
  ncclHostCftFallback = 3
} ncclHostCftMode_t;

/* ncclConfig_t.nvlsHostMode; the single Disable bits combine. */
typedef enum {
  ncclNvlsHostModeDefault = NCCL_CONFIG_UNDEF_INT,
  ncclNvlsHostModeEnable = 0,
  ncclNvlsHostModeDisableTransport = 1 << 0,
  ncclNvlsHostModeDisableSymmetricMultimem = 1 << 1,
  ncclNvlsHostModeDisable = INT_MAX
} ncclNvlsHostMode_t;

/* Configuration of a communicator. Start from NCCL_CONFIG_INITIALIZER and set what you need; the first
 * three members are not yours to change. Structures of older and newer headers are understood: members this
 * library does not know are ignored, members the caller's header did not know keep their defaults.
 *
 * Used on CPU ranks: minCTAs and maxCTAs (bounds on channels, at least 1; equal on all ranks), commName
 * (appears in logs). The others are accepted and have no effect there. With blocking = 0
 * - init and split return ncclInProgress and go on in the background: until ncclCommGetAsyncError stores
 *   ncclSuccess only that function, ncclCommDestroy and ncclCommAbort take the new communicator;
 * - collectives and sends with stream NULL, and ncclCommFinalize, return ncclInProgress and go on in the
 *   background, in order: more may be issued meanwhile, and all are complete when ncclCommGetAsyncError
 *   stores ncclSuccess. Until then their buffers are the library's. */
typedef struct ncclConfig_v23100 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking;
  int cgaClusterSize;
  int minCTAs;
  int maxCTAs;
  const char* netName;
  int splitShare;
  int trafficClass;
  const char* commName;
  int collnetEnable;
  int CTAPolicy;
  int shrinkShare;
  int nvlsCTAs;
  int nChannelsPerNetPeer;
  int nvlinkCentricSched;
  int graphUsageMode;
  int numRmaCtx;
  int maxP2pPeers;
  int graphStreamOrdering;
  int launchOrderImplicit;
  int numRmaSig;
  int rmaEagerInit;
  int hostCftMode;
  int nvlsHostMode;
} ncclConfig_t;

/* size, magic, version, then "not set" for every member in order. */
#define NCCL_CONFIG_INITIALIZER                                                                      \
  {                                                                                                  \
    sizeof(ncclConfig_t), NCCL_API_MAGIC, NCCL_VERSION_CODE,                 /* header */            \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,                        /* .. cgaClusterSize */ \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,                        /* min, max CTAs */     \
        NCCL_CONFIG_UNDEF_PTR,                                               /* netName */           \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,                        /* .. trafficClass */   \
        NCCL_CONFIG_UNDEF_PTR,                                               /* commName */          \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, /* .. shrinkShare */    \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, /* .. Sched */          \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, /* .. maxP2pPeers */    \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, /* .. numRmaSig */      \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT  /* .. nvlsHostMode */   \
  }

/* -- Library ---------------------------------------------------------------------------------------- */

/* Stores the version code of the library in use (NCCL_VERSION_CODE of its nccl.h).
 * Errors: ncclInvalidArgument if version is NULL. */
ncclResult_t ncclGetVersion(int* version);
ncclResult_t pncclGetVersion(int* version);

/* A short fixed text for a result; never NULL, "unknown result code" for other values. */
const char* ncclGetErrorString(ncclResult_t result);
const char* pncclGetErrorString(ncclResult_t result);

/* The text of the last error of this process, "" before the first one. comm is ignored and may be NULL.
 * The pointer stays valid until the same thread calls this function again. */
const char* ncclGetLastError(ncclComm_t comm);
const char* pncclGetLastError(ncclComm_t comm);

/* -- Communicators ---------------------------------------------------------------------------------- */

/* Makes the id of a new communicator. One rank calls this and gives the id to all ranks; an id serves for
 * one communicator. The calling process must live until all ranks have joined.
 * Errors: ncclInvalidArgument (NULL), ncclSystemError (no network interface to listen on). */
ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId);
ncclResult_t pncclGetUniqueId(ncclUniqueId* uniqueId);

/* Joins the communicator named by commId as `rank` of `nranks`. Returns when all ranks have joined, so the
 * ranks must call it concurrently: from several processes, several threads, or one thread between
 * ncclGroupStart and ncclGroupEnd. Inside a group *comm is written by ncclGroupEnd.
 * Errors: ncclInvalidArgument (comm NULL, nranks < 1, rank outside 0 .. nranks-1, an id that
 * ncclGetUniqueId did not make), ncclRemoteError (a rank died or did not come in time), ncclSystemError. */
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank);
ncclResult_t pncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank);

/* The same with a configuration; config may be NULL.
 * Errors: additionally ncclInvalidArgument for a configuration not made by NCCL_CONFIG_INITIALIZER or with
 * a member out of range, ncclInvalidUsage for bounds on channels that differ between ranks. */
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                    ncclConfig_t* config);
ncclResult_t pncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                     ncclConfig_t* config);

/* The same with nId ids (1 <= nId <= nranks), all ranks the same; ranks meet at the first. */
ncclResult_t ncclCommInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId,
                                      ncclUniqueId* commIds, ncclConfig_t* config);
ncclResult_t pncclCommInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId,
                                       ncclUniqueId* commIds, ncclConfig_t* config);

/* Divides comm: ranks that give the same color (>= 0) make up a new communicator, numbered by key, then by
 * their rank in comm. With NCCL_SPLIT_NOCOLOR a rank takes part but gets *newcomm = NULL. All ranks of comm
 * call it, in the same order as other splits. config NULL: as comm's. comm stays usable; the new
 * communicators outlive it. Inside a group *newcomm is written by ncclGroupEnd. Errors: ncclInvalidArgument
 * (NULL; on all ranks: a color below -1), ncclRemoteError (a rank died or did not come in time),
 * ncclSystemError. */
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config);
ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config);

/* Makes a communicator of comm's ranks without those in excludeRanksList, in the same order: after some of
 * them died, for instance. All ranks that remain call it, with the same list, in the same order as other
 * shrinks; the excluded ones do not. config NULL: as comm's. NCCL_SHRINK_DEFAULT: comm must be sound, and
 * stays so. NCCL_SHRINK_ABORT: comm's calls are aborted first, as by ncclCommAbort, whatever its state; it
 * must still be aborted or destroyed. excludeRanksCount may be 0. Inside a group *newcomm is written by
 * ncclGroupEnd. Errors: ncclInvalidArgument (NULL, a rank out of range or the caller's own, unknown flags),
 * ncclInvalidUsage (ranks that exclude different ones), ncclRemoteError (another rank is gone, or one did not
 * come in time), and with NCCL_SHRINK_DEFAULT whatever made comm unusable. */
ncclResult_t ncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount,
                            ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags);
ncclResult_t pncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount,
                             ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags);

/* Makes a communicator whose ranks all live in the calling process: rank i on device devlist[i], or on
 * device i if devlist is NULL. comm: array of ndev handles.
 * Errors: ncclInvalidArgument (comm NULL, ndev < 1, an unknown device). */
ncclResult_t ncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist);
ncclResult_t pncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist);

/* Completes everything that was started on comm; afterwards only ncclCommDestroy, ncclCommAbort and
 * queries are allowed. All ranks call it. ncclInProgress where comm doesn't block and something still runs.
 */
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t pncclCommFinalize(ncclComm_t comm);

/* Frees comm when all that was issued on it is complete. The handle is dead afterwards. */
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t pncclCommDestroy(ncclComm_t comm);

/* Stops whatever runs on comm, drops what was issued and has not begun, and frees comm without waiting for
 * other ranks. May be called from another thread than the one inside a collective. */
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t pncclCommAbort(ncclComm_t comm);

/* Stores the state of comm: ncclSuccess, the error that made it unusable, ncclRemoteError as soon as another
 * rank is known to have failed, or ncclInProgress (see ncclConfig_t's `blocking`). */
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError);
ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError);

/* Stores the number of ranks. */
ncclResult_t ncclCommCount(const ncclComm_t comm, int* count);
ncclResult_t pncclCommCount(const ncclComm_t comm, int* count);

/* Stores the device of this rank: a CUDA device number, or for a CPU rank the index in the list of
 * topocclGetDevices (topoccl.h). Without a devlist, ranks of a host take its devices in turn: with more ranks
 * than devices, several have the same. */
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device);
ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int* device);

/* Stores the number of this rank. */
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank);
ncclResult_t pncclCommUserRank(const ncclComm_t comm, int* rank);

/* -- Collectives ------------------------------------------------------------------------------------ */

/* recvbuff[i] = op over all ranks of sendbuff[i], for i in 0 .. count-1, on every rank; all ranks get the
 * same bits. sendbuff and recvbuff: count elements each, either the same pointer (in place) or disjoint.
 * Every rank passes the same count, datatype and op. Count 0 is legal, with any pointers.
 * Errors: ncclInvalidArgument (a dead communicator, a NULL buffer, an unknown datatype or op),
 * ncclInvalidUsage (a combination that is not supported), ncclRemoteError. */
ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                            ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);

/* The rules above hold for all collectives. Blocks of `count` elements: where a buffer has one per rank they
 * lie side by side in rank order; in place means that a rank's own block is the same memory in both buffers.
 * A buffer that a rank does not need may be NULL. Types of pure data movement matter only by their size:
 * every bit pattern arrives as it was. Errors: additionally ncclInvalidArgument for a root outside 0 ..
 * ranks-1 and for buffers that overlap without being in place. */

/* recvbuff of every rank = sendbuff of root. sendbuff is used on root only; in place: recvbuff == sendbuff.
 */
ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                           int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclBroadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                            int root, ncclComm_t comm, cudaStream_t stream);

/* ncclBroadcast in place. */
ncclResult_t ncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                       cudaStream_t stream);
ncclResult_t pncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                        cudaStream_t stream);

/* recvbuff of root = op over all ranks of sendbuff. recvbuff is used on root only. */
ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                         ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream);

/* Block r of every recvbuff = sendbuff of rank r. sendbuff: sendcount elements, recvbuff: ranks * sendcount;
 * in place: sendbuff == recvbuff + rank * sendcount. */
ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                            ncclComm_t comm, cudaStream_t stream);

/* recvbuff of rank r = op over all ranks of block r of sendbuff. sendbuff: ranks * recvcount elements,
 * recvbuff: recvcount; in place: recvbuff == sendbuff + rank * recvcount. */
ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                               ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                cudaStream_t stream);

/* Block r of root's recvbuff = sendbuff of rank r. recvbuff: ranks * count elements, used on root only; in
 * place on root: sendbuff == recvbuff + root * count. */
ncclResult_t ncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                        ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                         int root, ncclComm_t comm, cudaStream_t stream);

/* recvbuff of rank r = block r of root's sendbuff. sendbuff: ranks * count elements, used on root only; in
 * place on root: recvbuff == sendbuff + root * count. */
ncclResult_t ncclScatter(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                         int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclScatter(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                          int root, ncclComm_t comm, cudaStream_t stream);

/* Block s of rank r's recvbuff = block r of rank s's sendbuff. Both: ranks * count elements; not in place. */
ncclResult_t ncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                          ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                           ncclComm_t comm, cudaStream_t stream);

/* -- Point to point --------------------------------------------------------------------------------- */

/* Sends count elements to `peer`, which receives as many bytes with ncclRecv. Calls between two ranks match
 * in the order in which each rank makes them, whatever collectives run besides. ncclSend returns when
 * sendbuff may be used again: maybe before the peer has called, maybe only when it has received. Ranks that
 * send to each other, and a rank that sends to itself, put sends and receives into one group.
 * Errors: ncclInvalidArgument (a dead communicator, NULL although count > 0, peer outside 0 .. ranks-1),
 * ncclInvalidUsage (to itself without a partner in the group; another count than the peer's),
 * ncclRemoteError. */
ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t pncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                       cudaStream_t stream);
ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t pncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                       cudaStream_t stream);

/* -- Operators -------------------------------------------------------------------------------------- */

/* Makes an operator of comm: the sum of every rank's data times the rank's own *scalar, an element of
 * `datatype`. With ncclScalarHostImmediate the scalar is read now, with ncclScalarDevice when a call runs: it
 * must be there until the last one has (on a CPU rank both are host memory). Calls must use the same
 * datatype. Errors: ncclInvalidArgument (NULL, an unknown datatype or residence, a dead communicator). */
ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
                                      ncclScalarResidence_t residence, ncclComm_t comm);
ncclResult_t pncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
                                       ncclScalarResidence_t residence, ncclComm_t comm);

/* Ends an operator. Errors: ncclInvalidArgument for one that is not comm's. */
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm);
ncclResult_t pncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm);

/* -- Groups ----------------------------------------------------------------------------------------- */

/* Calls between ncclGroupStart and the matching ncclGroupEnd are collected and start together, so that one
 * thread can serve several ranks. Groups nest; the outermost ncclGroupEnd starts the work, after the set-up
 * of communicators that the group holds (programs for NCCL too give that a group of its own). Errors of
 * ncclGroupEnd: the first error of the calls in the group; ncclInvalidUsage without a start. */
ncclResult_t ncclGroupStart(void);
ncclResult_t pncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t pncclGroupEnd(void);

/* -- Registration ----------------------------------------------------------------------------------- */

/* Tells that [buff, buff + size) will be used often. Has no effect on CPU ranks.
 * Errors: ncclInvalidArgument (NULL, size 0; a handle that is not comm's). */
ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle);
ncclResult_t pncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle);
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle);
ncclResult_t pncclCommDeregister(const ncclComm_t comm, void* handle);

/* -- Memory ----------------------------------------------------------------------------------------- */

/* Allocates at least `size` bytes, page aligned, that peers on the same host can read without a copy.
 * *ptr is NULL for size 0. Errors: ncclInvalidArgument (ptr NULL), ncclSystemError (out of memory). */
ncclResult_t ncclMemAlloc(void** ptr, size_t size);
ncclResult_t pncclMemAlloc(void** ptr, size_t size);

/* Frees memory of ncclMemAlloc; NULL is allowed. Errors: ncclInvalidArgument for any other pointer. */
ncclResult_t ncclMemFree(void* ptr);
ncclResult_t pncclMemFree(void* ptr);

#ifdef __cplusplus
}
#endif

#endif /* NCCL_H_ */
#endif /* TOPOCCL_NCCL_H */
