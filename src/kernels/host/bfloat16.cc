// combine() of bfloat16 on hosts.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/bfloat16.cc"
#include "kernels/host/loops.h"

TOPOCCL_HOST_COMBINE(Bfloat16)
