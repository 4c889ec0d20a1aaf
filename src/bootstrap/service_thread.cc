#include "bootstrap/service_thread.h"

#include <pthread.h>

#include <exception>
#include <memory>
#include <system_error>

#include "base/error.h"
#include "base/limits.h"
#include "base/logging.h"
#include "base/signals.h"

namespace topoccl {
namespace {

// Idle threads should cost little address space.
constexpr size_t kStackBytes = 1 << 20;

void* runBody(void* argument) {
  const std::unique_ptr<std::function<void()>> body(static_cast<std::function<void()>*>(argument));
  try {
    (*body)();
  } catch (const std::exception& error) {
    log(Level::Warn, Subsystem::Bootstrap, "a service thread ends: ", error.what());
  }
  return nullptr;
}

}  // namespace

void startServiceThread(const char* name, std::function<void()> body) {
  auto owned = std::make_unique<std::function<void()>>([name, body = std::move(body)] {
    pthread_setname_np(pthread_self(), name);
    body();
  });
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_t thread;
  int error;
  {
    const SignalsBlocked blocked;
    error = pthread_create(&thread, &attributes, runBody, owned.get());
  }
  pthread_attr_destroy(&attributes);
  if (error != 0)
    throw Error(Code::SystemError, concat("starting the thread ", name, ": ",
                                          std::generic_category().message(error), limitOfThreads()));
  static_cast<void>(owned.release());  // runBody's
}

}  // namespace topoccl
