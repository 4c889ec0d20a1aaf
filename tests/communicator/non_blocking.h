// What tests of communicators that do not block share.
#pragma once

#include "communicator/movements.h"
#include "communicator/streams.h"
#include "nccl.h"

namespace topoccl::test {

inline ncclConfig_t nonBlocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

inline ncclResult_t awaitState(ncclComm_t comm) {
  return completed(ncclInProgress, comm);
}

}  // namespace topoccl::test
