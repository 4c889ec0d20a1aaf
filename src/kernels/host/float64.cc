// combine() of float64 on hosts.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/float64.cc"
#include "kernels/host/loops.h"

TOPOCCL_HOST_COMBINE(Float64)
