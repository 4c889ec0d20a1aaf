#include "base/error.h"

#include <system_error>

#include "base/limits.h"

namespace topoccl {

const Error& outOfMemoryError() {
  static const auto* const error = new Error(Code::SystemError, "out of memory");
  return *error;
}

void throwSystemError(const std::string& what, int error) {
  throw Error(Code::SystemError,
              concat(what, ": ", std::generic_category().message(error), limitBehind(error)));
}

}  // namespace topoccl
