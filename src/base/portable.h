// One macro for functions that host compilers and nvcc both compile.
#pragma once

#if defined(__CUDACC__)
#define TOPOCCL_HOST_DEVICE __host__ __device__
#else
#define TOPOCCL_HOST_DEVICE
#endif
