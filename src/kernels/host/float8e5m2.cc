// combine() of float8e5m2 on hosts.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/float8e5m2.cc"
#include "kernels/host/loops.h"

TOPOCCL_HOST_COMBINE(Float8e5m2)
