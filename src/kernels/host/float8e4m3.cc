// combine() of float8e4m3 on hosts.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/float8e4m3.cc"
#include "kernels/host/loops.h"

TOPOCCL_HOST_COMBINE(Float8e4m3)
