// What the floors of compare.sh share: buffers, and sizes with the time of each.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace topoccl::bench {

// The index-th core that this process may use, or any.
inline void bindToCore(int index) {
  cpu_set_t allowed, only;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  CPU_ZERO(&only);
  for (size_t core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed) && index-- == 0) CPU_SET(core, &only);
  if (CPU_COUNT(&only) == 1) pthread_setaffinity_np(pthread_self(), sizeof(only), &only);
}

// Floats at the start of a page, filled.
class PageBuffer {
 public:
  explicit PageBuffer(size_t bytes) : bytes_(bytes + kPageBytes) {
    memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) {
      std::perror("mmap");
      std::exit(1);
    }
    for (size_t i = 0; i < bytes / sizeof(float); ++i) floats()[i] = at(i);
  }
  ~PageBuffer() { ::munmap(memory_, bytes_); }
  PageBuffer(const PageBuffer&) = delete;
  PageBuffer& operator=(const PageBuffer&) = delete;

  float* floats() const { return static_cast<float*>(memory_); }
  static float at(size_t i) { return static_cast<float>(i % 100); }

 private:
  static constexpr size_t kPageBytes = 4096;
  size_t bytes_;
  void* memory_;
};

// PROGRAM MINBYTES MAXBYTES FACTOR ITERATIONS, as mpi_collective.
struct LimitSweep {
  size_t first = 8, last = 8, factor = 2;
  int iterations = 1;

  static LimitSweep parse(int count, char** arguments, const char* program) {
    const bool help =
        count == 2 && (std::strcmp(arguments[1], "-h") == 0 || std::strcmp(arguments[1], "--help") == 0);
    LimitSweep sweep;
    if (count == 5) {
      sweep.first = std::strtoull(arguments[1], nullptr, 10);
      sweep.last = std::strtoull(arguments[2], nullptr, 10);
      sweep.factor = std::strtoull(arguments[3], nullptr, 10);
      sweep.iterations = static_cast<int>(std::strtol(arguments[4], nullptr, 10));
      if (sweep.first >= 4 && sweep.last >= sweep.first && sweep.last <= size_t{1} << 32 &&
          sweep.factor >= 2 && sweep.iterations >= 1)
        return sweep;
    }
    std::fprintf(help ? stdout : stderr,
                 "usage: %s MINBYTES MAXBYTES FACTOR ITERATIONS\n"
                 "MINBYTES from 4, MAXBYTES up to 2^32, FACTOR from 2, ITERATIONS from 1\n",
                 program);
    std::exit(help ? 0 : 2);
  }

  // Times `call(bytes)` for each size, and returns the last one; `prints`: on one of the ranks.
  template <class Call>
  size_t run(const Call& call, bool prints = true) const {
    for (size_t bytes = first; bytes <= last; bytes *= factor) call(bytes);
    for (size_t bytes = first; bytes <= last; bytes *= factor) {
      call(bytes);
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < iterations; ++i) call(bytes);
      const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
      if (prints) std::printf("%zu %.3f\n", bytes / sizeof(float) * sizeof(float), time.count() / iterations);
    }
    std::fflush(stdout);
    size_t largest = first;
    while (largest * factor <= last) largest *= factor;
    return largest;
  }
};

}  // namespace topoccl::bench
