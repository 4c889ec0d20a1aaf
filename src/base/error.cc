#include "base/error.h"

#include <system_error>

#include "base/limits.h"

namespace topoccl {

namespace {

// Never destroyed: threads may fail while the process exits.
const Error* const kOutOfMemory = new Error(Code::SystemError, "out of memory");

}  // namespace

const Error& outOfMemoryError() {
  return *kOutOfMemory;
}

void throwSystemError(const std::string& what, int error) {
  throw Error(Code::SystemError,
              concat(what, ": ", std::generic_category().message(error), limitBehind(error)));
}

}  // namespace topoccl
