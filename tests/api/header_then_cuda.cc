// A program that keeps CUDA out of nccl.h and includes it later all the same.
#define TOPOCCL_NO_CUDA
#include "nccl.h"

// After it:
#include <cuda_runtime.h>

static cudaStream_t stream = nullptr;
CUstream_st** sameType() {
  return &stream;
}
