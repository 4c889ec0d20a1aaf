#include "common/watchdog.h"

#include <unistd.h>

#include <cstdio>

#include "common/failure.h"

namespace topoccl::bench {

Watchdog::Watchdog(int seconds, std::function<void()> beforeEnd)
    : limit_(seconds), beforeEnd_(std::move(beforeEnd)) {
  pet();
  if (seconds > 0) thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    isOver_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::pet() {
  const std::lock_guard lock(mutex_);
  deadline_ = std::chrono::steady_clock::now() + limit_;
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!isOver_) {
    if (std::chrono::steady_clock::now() >= deadline_) {
      std::fprintf(stderr, "%s: Test timeout (%llds)\n", hostName().c_str(),
                   static_cast<long long>(limit_.count()));
      beforeEnd_();
      _exit(static_cast<int>(ExitCode::Timeout));
    }
    changed_.wait_until(lock, deadline_);
  }
}

}  // namespace topoccl::bench
