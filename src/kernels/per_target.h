// How kernel headers are compiled: once per vector instruction set where host/combine.cc includes them,
// once and plainly everywhere else (nvcc, tests).
//
// A function template takes part in a processor's instruction set only if its *definition* stands inside
// Highway's attribute pragmas, so a header with templates over vectors is read again for each target, in a
// namespace of that target. Such a header
//   - is guarded by a name compared with HWY_TARGET_TOGGLE, which Highway flips for each target and which is
//     never defined elsewhere: there the guard is an ordinary one;
//   - wraps its contents in TOPOCCL_BEGIN_KERNELS and TOPOCCL_END_KERNELS.
#pragma once

#include "base/portable.h"

#if defined(HWY_TARGET_INCLUDE)
#define TOPOCCL_BEGIN_KERNELS \
  HWY_BEFORE_NAMESPACE();     \
  namespace topoccl {         \
  namespace HWY_NAMESPACE {
#define TOPOCCL_END_KERNELS \
  }                         \
  }                         \
  HWY_AFTER_NAMESPACE();
#else
#define TOPOCCL_BEGIN_KERNELS namespace topoccl {
#define TOPOCCL_END_KERNELS }
#endif

// A function of the inner loop: host and device, always inlined, so that pointers copied out of the
// arguments stay in registers.
#define TOPOCCL_KERNEL TOPOCCL_HOST_DEVICE inline __attribute__((always_inline))

// Before a loop over the packs of a block: their values are registers only once it is unrolled.
#if defined(__CUDACC__) || defined(__clang__)
#define TOPOCCL_UNROLL _Pragma("unroll")
#else
#define TOPOCCL_UNROLL _Pragma("GCC unroll 16")
#endif
