// Keeps the program's signal handlers off the library's threads, and the library's signals off the program.
#pragma once

#include <signal.h>

#include <cerrno>
#include <ctime>
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

// While it lives, what this thread writes fails without a signal beside the error: a pipe that nobody reads
// (SIGPIPE), a file that would exceed ulimit -f (SIGXFSZ).
class WriteSignalsKept {
 public:
  WriteSignalsKept() {
    sigemptyset(&ours_);
    for (const int each : {SIGPIPE, SIGXFSZ}) sigaddset(&ours_, each);
    sigpending(&pending_);
    pthread_sigmask(SIG_BLOCK, &ours_, &before_);
  }
  ~WriteSignalsKept() {
    const int saved = errno;
    // What was pending already is not ours to take.
    for (const int each : {SIGPIPE, SIGXFSZ})
      if (sigismember(&pending_, each) == 1) sigdelset(&ours_, each);
    const timespec none{};
    while (sigtimedwait(&ours_, nullptr, &none) > 0 || errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = saved;
  }
  WriteSignalsKept(const WriteSignalsKept&) = delete;
  WriteSignalsKept& operator=(const WriteSignalsKept&) = delete;

 private:
  sigset_t ours_, pending_, before_;
};

}  // namespace topoccl
