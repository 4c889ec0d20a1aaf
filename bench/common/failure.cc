#include "common/failure.h"

#include <unistd.h>

#include <cstring>

namespace topoccl::bench {

void check(ncclResult_t result, const char* file, int line) {
  if (result == ncclSuccess) return;
  const char* slash = std::strrchr(file, '/');
  const std::string place = std::string(slash != nullptr ? slash + 1 : file) + ":" + std::to_string(line);
  throw Failure(ExitCode::NcclError, hostName() + ": Test NCCL failure " + place + " '" +
                                         ncclGetErrorString(result) + " / " + ncclGetLastError(nullptr) +
                                         "'\n .. " + hostName() + " pid " + std::to_string(getpid()) +
                                         ": Test failure " + place);
}

}  // namespace topoccl::bench
