#include "common/local_processes.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "common/board.h"
#include "common/failure.h"
#include "common/variables.h"

namespace topoccl::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kSeatVariable = "TOPOCCL_BENCH_CHILD";  // for this program's own use
constexpr const char* kSeatForm = "RANK:RANKS:DESCRIPTOR:PARENT";

[[noreturn]] void fail(const std::string& what, int error) {
  throw Failure(ExitCode::InternalError, what + ": " + std::strerror(error));
}

sigset_t watchedSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&set, signal);
  return set;
}

int makeBoardFile(size_t bytes) {
  // Inherited by the children, so without close-on-exec; it has no name anywhere.
  const int descriptor = memfd_create("topoccl-bench-board", 0);
  if (descriptor < 0) fail("making the shared memory of the ranks", errno);
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) fail("sizing the ranks' shared memory", errno);
  return descriptor;
}

pid_t spawn(char** arguments, const std::string& seat, const sigset_t& mask) {
  std::string variable = std::string(kSeatVariable) + "=" + seat;
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; entry++) environment.push_back(*entry);
  environment.push_back(variable.data());
  environment.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &mask);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, "/proc/self/exe", nullptr, &attributes, arguments, environment.data());
  posix_spawnattr_destroy(&attributes);
  if (error != 0) fail("starting a rank's process", error);
  return pid;
}

class Supervisor {
 public:
  Supervisor(char** arguments, int ranks, int drivers)
      : descriptor_(makeBoardFile(Board::bytesNeeded(drivers))),
        map_(MemoryMap::ofFile(descriptor_, Board::bytesNeeded(drivers))),
        board_(map_.data(), drivers, 0),
        watched_(watchedSignals()) {
    signal(SIGCHLD, SIG_DFL);  // an inherited SIG_IGN would swallow the exit codes
    sigset_t before;
    sigprocmask(SIG_BLOCK, &watched_, &before);
    for (int rank = 0; rank < ranks; rank++) {
      const std::string seat = std::to_string(rank) + ":" + std::to_string(ranks) + ":" +
                               std::to_string(descriptor_) + ":" + std::to_string(getpid());
      try {
        children_.push_back({spawn(arguments, seat, before), true});
      } catch (...) {
        signalAll(SIGKILL);
        throw;
      }
    }
    close(descriptor_);
  }

  int run() {
    while (anyAlive()) {
      wait();
      reap();
      escalate();
    }
    return exitCode_;
  }

 private:
  struct Child {
    pid_t pid;
    bool isAlive;
  };

  bool anyAlive() const {
    for (const Child& child : children_) {
      if (child.isAlive) return true;
    }
    return false;
  }

  void signalAll(int signal) {
    isSignalling_ = true;
    for (const Child& child : children_) {
      if (child.isAlive) kill(child.pid, signal);
    }
  }

  // Until something happens, or until the next escalation is due.
  void wait() {
    const timespec step{1, 0};
    const int signal = sigtimedwait(&watched_, nullptr, &step);
    if (signal <= 0 || signal == SIGCHLD) return;
    board_.fail();
    signalAll(signal);
    if (exitCode_ == 0) exitCode_ = 128 + signal;
    startGrace();
  }

  void reap() {
    for (size_t rank = 0; rank < children_.size(); rank++) {
      Child& child = children_[rank];
      int status = 0;
      if (!child.isAlive || waitpid(child.pid, &status, WNOHANG) != child.pid) continue;
      child.isAlive = false;
      if (WIFSIGNALED(status)) {
        noteDeath(rank, child.pid, WTERMSIG(status));
      } else if (WEXITSTATUS(status) != 0) {
        noteFailure(WEXITSTATUS(status));
      }
    }
  }

  void noteDeath(size_t rank, pid_t pid, int signal) {
    if (!isSignalling_) {
      hasDeath_ = true;
      exitCode_ = static_cast<int>(ExitCode::InternalError);
      std::fprintf(stderr, "# error: rank %zu (pid %d) was killed by signal %d (%s)\n", rank, pid, signal,
                   strsignal(signal));
    }
    noteFailure(static_cast<int>(ExitCode::InternalError));
  }

  // Ranks that stop because another one failed end with InternalError: the first other code tells why. A rank
  // that died explains all the errors that the others then report.
  void noteFailure(int code) {
    if (!hasDeath_ && (exitCode_ == 0 || exitCode_ == static_cast<int>(ExitCode::InternalError)))
      exitCode_ = code;
    board_.fail();
    startGrace();
  }

  void startGrace() {
    if (graceEnd_ == Clock::time_point::max()) graceEnd_ = Clock::now() + std::chrono::seconds(3);
  }

  void escalate() {
    if (Clock::now() < graceEnd_) return;
    signalAll(isLastStep_ ? SIGKILL : SIGTERM);
    isLastStep_ = true;
    graceEnd_ = Clock::now() + std::chrono::seconds(2);
  }

  int descriptor_;
  MemoryMap map_;
  Board board_;
  sigset_t watched_;
  std::vector<Child> children_;
  int exitCode_ = 0;
  bool hasDeath_ = false;      // a rank died of a signal that is not ours
  bool isSignalling_ = false;  // we sent signals: deaths are our doing
  bool isLastStep_ = false;
  Clock::time_point graceEnd_ = Clock::time_point::max();
};

}  // namespace

std::optional<ChildSeat> takeChildSeat() {
  const auto numbers = numbersVariable(kSeatVariable, kSeatForm);
  if (numbers.empty()) return std::nullopt;
  const ChildSeat seat{static_cast<int>(numbers[0]), static_cast<int>(numbers[1]),
                       static_cast<int>(numbers[2])};
  const auto parent = static_cast<pid_t>(numbers[3]);
  unsetenv(kSeatVariable);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the line above.
  if (getppid() != parent) throw Failure(ExitCode::InternalError, "the parent process is gone");
  fcntl(seat.boardDescriptor, F_SETFD, FD_CLOEXEC);
  return seat;
}

int superviseLocalRanks(char** arguments, int ranks, int drivers) {
  return Supervisor(arguments, ranks, drivers).run();
}

}  // namespace topoccl::bench
