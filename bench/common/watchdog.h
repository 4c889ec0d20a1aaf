// Ends the process when something takes too long: -T. A rank stuck inside a call can't be asked to return.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace topoccl::bench {

class Watchdog {
 public:
  // 0 seconds: never. `beforeEnd` runs on the watchdog's thread right before the process ends with
  // ExitCode::Timeout.
  Watchdog(int seconds, std::function<void()> beforeEnd);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Starts the time anew.
  void pet();

 private:
  void watch();

  std::chrono::seconds limit_;
  std::function<void()> beforeEnd_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::chrono::steady_clock::time_point deadline_;
  bool isOver_ = false;
  std::thread thread_;
};

}  // namespace topoccl::bench
