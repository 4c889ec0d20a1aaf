// combine() of both 8-bit floating types on hosts.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/float8.cc"
#include "kernels/host/loops.h"

TOPOCCL_HOST_COMBINE(Float8e4m3)
TOPOCCL_HOST_COMBINE(Float8e5m2)
