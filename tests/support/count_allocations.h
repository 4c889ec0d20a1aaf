// Linked into a program, counts what each of its threads takes with operator new.
#pragma once

#include <cstdint>

namespace topoccl::test {

uint64_t allocationsOfThisThread();

}  // namespace topoccl::test
