// combine() of 8-bit integers on hosts.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/int8.cc"
#include "kernels/host/loops.h"

TOPOCCL_HOST_COMBINE(Int8)
TOPOCCL_HOST_COMBINE(Uint8)
