// What tests of communicators that do not block share.
#pragma once

#include <string>

#include "communicator/movements.h"
#include "nccl.h"

namespace topoccl::test {

inline std::string lastError() {
  return ncclGetLastError(nullptr);
}

inline ncclConfig_t nonBlocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

inline ncclResult_t awaitState(ncclComm_t comm) {
  return completed(ncclInProgress, comm);
}

}  // namespace topoccl::test
