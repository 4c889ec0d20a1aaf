// Ranks as threads, for tests.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/bootstrap.h"

namespace topoccl::testing {

// Runs `body` once per rank, each in its own thread; returns what each threw, "" for nothing.
inline std::vector<std::string> onThreads(int ranks, const std::function<void(int)>& body) {
  std::vector<std::string> errors(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

inline Settings settingsWithTimeout(int milliseconds) {
  Settings settings;
  settings.socketInterfaces = "=lo";
  settings.initTimeout = std::chrono::milliseconds(milliseconds);
  return settings;
}

// Different for each rank and of differing size.
inline std::string blobOf(int rank) {
  return std::string(static_cast<size_t>(rank * 37 % 1000), static_cast<char>('a' + rank % 26));
}

inline bool areAllBlobs(const std::vector<std::string>& blobs, int ranks) {
  bool right = blobs.size() == static_cast<size_t>(ranks);
  for (int rank = 0; right && rank < ranks; ++rank) right = blobs[static_cast<size_t>(rank)] == blobOf(rank);
  return right;
}

// Waits until failure() shows something, 20 s at most.
inline PeerFailure awaitFailure(Bootstrap& bootstrap) {
  for (int i = 0; i < 20'000; ++i) {
    if (const auto failure = bootstrap.failure()) return *failure;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {-2, "no failure was noticed"};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace topoccl::testing
