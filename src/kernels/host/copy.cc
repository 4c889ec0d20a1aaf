// hostCopy(): the loop over bytes with nothing to compute.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/copy.cc"
#include "kernels/host/loops.h"

HWY_BEFORE_NAMESPACE();
namespace topoccl {
namespace HWY_NAMESPACE {

void copyBytes(const CombineArgs& args) {
  runLoop<Byte, First>(args);
}

}  // namespace HWY_NAMESPACE
}  // namespace topoccl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace topoccl {

HWY_EXPORT(copyBytes);

void hostCopy(const CombineArgs& args) {
  HWY_DYNAMIC_DISPATCH(copyBytes)(args);
}

}  // namespace topoccl
#endif
