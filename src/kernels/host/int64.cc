// combine() of 64-bit integers on hosts.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/int64.cc"
#include "kernels/host/loops.h"

TOPOCCL_HOST_COMBINE(Int64)
TOPOCCL_HOST_COMBINE(Uint64)
