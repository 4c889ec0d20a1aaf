// The main function of every bench.
#pragma once

#include "common/collective.h"

namespace topoccl::bench {

// Returns the exit code (failure.h).
int benchMain(int argumentCount, char** arguments, const Collective& collective);

}  // namespace topoccl::bench
