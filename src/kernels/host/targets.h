// The instruction sets that host code is compiled for. A source file names itself as HWY_TARGET_INCLUDE and
// includes this before any other header that is read once per target.

// SSSE3 without SSE4 died with the processors of 2008. The scalable vectors of Arm and RISC-V can't be
// members of a struct, which blocks of packs are; Arm falls back to NEON.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

#if defined(HWY_TARGET_INCLUDE)
#include <hwy/foreach_target.h>
#endif
// After foreach_target.h:
#include <hwy/highway.h>
