// What the log says once per process, at its first init: which library answers, and which settings are set.
#pragma once

namespace topoccl::api {

// As in NCCL: the version from VERSION on, below INFO only in the process of rank 0; settings at INFO.
void announce(int rank);

}  // namespace topoccl::api
