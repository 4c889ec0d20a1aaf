// Keeps the program's signal handlers off the library's threads.
#pragma once

#include <signal.h>

#include <initializer_list>

namespace topoccl {

// Blocks signals on this thread while it lives; a thread made meanwhile inherits that for good. All but those
// that a thread causes itself: where a program handles a page fault, it may be at a buffer of its own.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t foreign;
    sigfillset(&foreign);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&foreign, own);
    pthread_sigmask(SIG_SETMASK, &foreign, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace topoccl
