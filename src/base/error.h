// Errors of set-up code. Set-up throws `Error`; the C boundary (src/api) turns it into a result code and
// the last-error text. Data paths never throw.
#pragma once

#include <locale>
#include <sstream>
#include <stdexcept>
#include <string>

namespace topoccl {

// Values equal ncclResult_t's, so that the C boundary is a cast.
enum class Code {
  Success = 0,
  UnhandledCudaError = 1,
  SystemError = 2,
  InternalError = 3,
  InvalidArgument = 4,
  InvalidUsage = 5,
  RemoteError = 6,
  InProgress = 7,
};

// A message says what was tried, on which rank and peer, and what to do.
class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Code code() const { return code_; }

 private:
  Code code_;
};

// There from the start; copies take no memory.
const Error& outOfMemoryError();

// A text that does not depend on the program's global locale.
class TextStream : public std::ostringstream {
 public:
  TextStream() { imbue(std::locale::classic()); }
};

// Joins its arguments as `operator<<` prints them.
template <class... Parts>
std::string concat(const Parts&... parts) {
  TextStream text;
  (text << ... << parts);
  return text.str();
}

// "1 rank", "2 ranks".
template <class Count>
std::string counted(Count count, const char* one) {
  return concat(count, ' ', one, count == 1 ? "" : "s");
}

// Throws SystemError with "WHAT: <text of errno>", and the limit behind it (limits.h). `error` is an errno
// value.
[[noreturn]] void throwSystemError(const std::string& what, int error);

}  // namespace topoccl
