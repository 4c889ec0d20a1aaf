// All threads of a one-dimensional CUDA block.
#pragma once

#include <cstdint>

#include "kernels/group.h"

namespace topoccl {

struct BlockGroup {
  __device__ uint64_t rank() const { return threadIdx.x; }
  __device__ uint64_t size() const { return blockDim.x; }
  __device__ void sync() const { __syncthreads(); }
};

}  // namespace topoccl
