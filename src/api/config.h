// ncclConfig_t of any NCCL version -> CommConfig.
#pragma once

#include "communicator/communicator.h"
#include "nccl.h"

namespace topoccl::api {

// `config` may be NULL (defaults) and may have been built by an older, newer or larger header: `size` says
// how many bytes may be read, `version` which members mean something. Throws InvalidArgument naming the
// member, its value and what is allowed.
CommConfig readConfig(const ncclConfig_t* config);

}  // namespace topoccl::api
