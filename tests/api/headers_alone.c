/* Both headers as the only includes of a C99 file, twice. */
#include "nccl.h"
#include "topoccl.h"

ncclResult_t useEverything(ncclComm_t comm, cudaStream_t stream);

ncclResult_t useEverything(ncclComm_t comm, cudaStream_t stream) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclUniqueId id;
  topocclPlan_t plan;
  config.blocking = NCCL_VERSION(2, 32, 3) == NCCL_VERSION_CODE;
  if (ncclGetUniqueId(&id) != ncclSuccess || comm == NCCL_COMM_NULL) return ncclInvalidUsage;
  if (ncclCommInitRankConfig(&comm, 1, id, 0, &config) != ncclSuccess) return ncclInternalError;
  if (topocclCommExplain(comm, "all_reduce", 1, ncclFloat, &plan) != ncclSuccess) return ncclInternalError;
  return pncclAllReduce(NULL, NULL, 0, ncclBfloat16, ncclAvg, comm, stream);
}
