// How a bench ends: exit codes as nccl-tests has them, and the exception that carries one to main.
#pragma once

#include <stdexcept>
#include <string>

#include "nccl.h"

namespace topoccl::bench {

enum class ExitCode {
  Success = 0,
  InternalError = 1,
  CudaError = 2,
  NcclError = 3,
  Timeout = 4,
  NotImplemented = 5,
  InvalidUsage = 6,
  WrongData = 7,  // also: less bandwidth than NCCL_TESTS_MIN_BW asks for
  BadArguments = 255,
};

class Failure : public std::runtime_error {
 public:
  Failure(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// Throws NcclError with nccl-tests' text for a failed call: place, meaning of the result, last error.
void check(ncclResult_t result, const char* file = __builtin_FILE(), int line = __builtin_LINE());

std::string hostName();

}  // namespace topoccl::bench
