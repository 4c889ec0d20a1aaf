// How far the core is on which the producer of a connection runs, as its reader sees it: the time to load a
// cache line that the producer has just written.
//
// It decides how large messages between processes come sooner. A core waits for some twelve cache lines at a
// time, so what passes through slots moves at 12 x 64 bytes a load at most: at 60 ns as fast as the kernel
// copies from process to process (some 13 GB/s). Measured: cores that share their last-level cache 0 to 20
// ns, others 110 (docs/measurements/collectives.md). The cores of a virtual machine move, so the reader keeps
// looking.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "kernels/sync.h"

namespace topoccl {

class CoreDistance {
 public:
  // Loads from a line that the other core wrote last.
  void look(const uint64_t* line) {
    if (assumed_) return;
    const int64_t begin = now();
    loadRelaxed(line);
    const int64_t end = now();
    add(end - begin - clockCost());
  }

  // A load took that long.
  void add(int64_t nanoseconds) {
    least_ = std::min(least_, nanoseconds);
    if (++looks_ % kLooks != 0) return;
    far_ = least_ > (far_ ? kNearNanoseconds : kFarNanoseconds);
    least_ = INT64_MAX;
  }

  bool far() const { return far_; }

  // For good, without looking.
  void assumeFar() { assumed_ = far_ = true; }

 private:
  static constexpr int64_t kNearNanoseconds = 45, kFarNanoseconds = 75;
  static constexpr uint32_t kLooks = 4;  // whose least is believed: a reader may be interrupted

  static int64_t now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  static int64_t clockCost() {
    static const int64_t cost = [] {
      int64_t least = INT64_MAX;
      for (int i = 0; i < 32; ++i) {
        const int64_t begin = now();
        least = std::min(least, now() - begin);
      }
      return least;
    }();
    return cost;
  }

  int64_t least_ = INT64_MAX;
  uint32_t looks_ = 0;
  bool far_ = false;
  bool assumed_ = false;
};

}  // namespace topoccl
