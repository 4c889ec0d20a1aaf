// Linked into a program, counts what each of its threads takes with operator new, and lets it fail there.
#pragma once

#include <cstdint>

namespace topoccl::test {

uint64_t allocationsOfThisThread();

// The allocation of this thread that comes after `others` more throws bad_alloc; only that one.
void failAllocationAfter(uint64_t others);
// Ends that. Returns whether it has thrown.
bool hasFailedAnAllocation();

}  // namespace topoccl::test
