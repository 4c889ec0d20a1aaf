// combine() of float32 on hosts.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/float32.cc"
#include "kernels/host/loops.h"

TOPOCCL_HOST_COMBINE(Float32)
