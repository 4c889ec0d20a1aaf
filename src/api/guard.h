// The one place where exceptions become result codes.
#pragma once

#include <cerrno>
#include <exception>
#include <new>
#include <string>

#include "base/error.h"
#include "base/logging.h"
#include "communicator/communicator.h"
#include "nccl.h"

namespace topoccl::api {

// The caller's errno is not ours to change.
class ErrnoKeeper {
 public:
  ErrnoKeeper() : saved_(errno) {}
  ~ErrnoKeeper() { errno = saved_; }
  ErrnoKeeper(const ErrnoKeeper&) = delete;
  ErrnoKeeper& operator=(const ErrnoKeeper&) = delete;

 private:
  int saved_;
};

// Stores "FUNCTION: MESSAGE" as the last error and logs it. Out of memory costs the text, never the result
// code.
inline ncclResult_t report(const char* function, Code code, const char* message) noexcept {
  try {
    LogPoint refused(Level::Warn);
    refused.function = function;
    log(refused, Subsystem::Call, message);
    setLastError(concat(function, ": ", message));
  } catch (...) {
  }
  return static_cast<ncclResult_t>(code);
}

// Runs `body`; `function` is the C function's name, for the last-error text. An Error with Code::InProgress
// is how non-blocking calls say "not yet": it leaves the last error alone.
template <class F>
ncclResult_t guarded(const char* function, F&& body) noexcept {
  const ErrnoKeeper keeper;
  try {
    body();
    return ncclSuccess;
  } catch (const Error& error) {
    if (error.code() == Code::InProgress) return ncclInProgress;
    return report(function, error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return report(function, Code::SystemError, "out of memory");
  } catch (const std::exception& error) {
    return report(function, Code::InternalError, error.what());
  } catch (...) {
    return report(function, Code::InternalError, "an exception of unknown type; please report this");
  }
}

// As the group's end will tell it.
inline void refuseWithName(const char* function, const Error& error) noexcept {
  try {
    refuseInGroup(Error(error.code(), concat(function, ": ", error.what())));
  } catch (const std::bad_alloc&) {
    refuseInGroupForMemory();
  }
}

// The same for functions that a group collects: what one of them refuses, the group's end reports too.
template <class F>
ncclResult_t guardedInGroup(const char* function, F&& body) noexcept {
  return guarded(function, [&] {
    try {
      body();
    } catch (const Error& error) {
      refuseWithName(function, error);
      throw;
    } catch (const std::bad_alloc&) {
      refuseInGroupForMemory();
      throw;
    }
  });
}

}  // namespace topoccl::api
