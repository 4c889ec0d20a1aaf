// Both headers as the only includes of a C++ file: the C file is C++ too.
#include "headers_alone.c"

static_assert(NCCL_VERSION(2, 8, 4) == 2804 && NCCL_VERSION(2, 14, 0) == 21400);
static_assert(sizeof(ncclUniqueId) == NCCL_UNIQUE_ID_BYTES);
static_assert(ncclMaxRedOp == 0x7fffffff);
