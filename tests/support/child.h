// Processes of a test that may hang or die: each has a time limit, and how it ended can be told.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>

namespace topoccl::test {

inline constexpr std::chrono::seconds kChildLimit{120};  // against hangs; a loaded machine is slow

// Forks a child that runs `body` and ends with its result.
inline pid_t startChild(const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child != 0) return child;
  const int result = body();
  std::fflush(nullptr);
  ::_exit(result);
}

// How it ended: "" with 0, else in words. Kills it when its time is over.
inline std::string endOf(pid_t child, std::chrono::milliseconds limit = kChildLimit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  int status = 0;
  for (;;) {
    if (::waitpid(child, &status, WNOHANG) == child) break;
    if (std::chrono::steady_clock::now() > end) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return "hung";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : "exit " + std::to_string(WEXITSTATUS(status));
}

inline std::string runChild(const std::function<int()>& body) {
  return endOf(startChild(body));
}

}  // namespace topoccl::test
