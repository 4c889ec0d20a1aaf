// combine() of 32-bit integers on hosts.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/int32.cc"
#include "kernels/host/loops.h"

TOPOCCL_HOST_COMBINE(Int32)
TOPOCCL_HOST_COMBINE(Uint32)
