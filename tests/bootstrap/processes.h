// Ranks as processes, for tests. The parent must have no threads.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "ranks.h"
#include "support/shared_value.h"

namespace topoccl::testing {

using test::SharedValue;

// Children, each with the text of its error in a pipe; "" means it ended well, "killed" that it was killed.
class Processes {
 public:
  Processes(int count, const std::function<void(int)>& body) {
    for (int index = 0; index < count; ++index) start(index, body);
  }
  pid_t pid(int index) const { return children_[static_cast<size_t>(index)].pid; }
  std::vector<std::string> wait() {
    std::vector<std::string> errors;
    for (const Child& child : children_) errors.push_back(finish(child));
    return errors;
  }

 private:
  struct Child {
    pid_t pid;
    int output;
  };

  void start(int index, const std::function<void(int)>& body) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    const pid_t pid = ::fork();
    if (pid == 0) {
      std::string error;
      try {
        body(index);
      } catch (const std::exception& thrown) {
        error = thrown.what();
      }
      ssize_t written = ::write(ends[1], error.data(), error.size());
      ::_exit(written < 0 ? 1 : 0);
    }
    ::close(ends[1]);
    children_.push_back({pid, ends[0]});
  }

  static std::string finish(const Child& child) {
    std::string text;
    char buffer[512];
    for (ssize_t count; (count = ::read(child.output, buffer, sizeof(buffer))) > 0;)
      text.append(buffer, static_cast<size_t>(count));
    ::close(child.output);
    int status = 0;
    ::waitpid(child.pid, &status, 0);
    if (WIFSIGNALED(status)) return "killed";
    return WEXITSTATUS(status) == 0 ? text : "exit " + std::to_string(WEXITSTATUS(status)) + ": " + text;
  }

  std::vector<Child> children_;
};

// Where child 0 leaves the id for the others.
struct IdBox {
  std::atomic<bool> ready{false};
  UniqueId id;

  UniqueId make(const Settings& settings) {
    id = getUniqueId(settings);
    ready = true;
    return id;
  }
  UniqueId take() {
    while (!ready) ::usleep(1000);
    return id;
  }
};

}  // namespace topoccl::testing
