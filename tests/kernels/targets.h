// Runs a piece of a test once for every instruction set this processor has and Highway knows.
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdint>

namespace topoccl {

// Back to the processor's own choice at the end of a scope, also when an assertion left it early.
struct TargetReset {
  ~TargetReset() {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }
};

template <class Function>
void forEachTarget(const Function& function) {
  const TargetReset reset;
  // Scalar code is what remains where no other target fits.
  for (int64_t left = (hwy::SupportedTargets() & HWY_TARGETS) | HWY_SCALAR; left != 0; left &= left - 1) {
    const int64_t target = left & -left;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
    function();
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace topoccl
