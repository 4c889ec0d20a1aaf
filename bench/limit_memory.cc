// limit_memory: what an all-reduce of two ranks can't beat: two threads, a core each, that read both inputs
// once, and write both outputs once, past the caches. No slots, no other thread to wait for but at the end.
//
// One line per size: "BYTES MICROSECONDS", BYTES of one buffer, floats.
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "limit_sweep.h"

namespace {

using topoccl::bench::bindToCore;
using topoccl::bench::LimitSweep;
using topoccl::bench::PageBuffer;

struct Buffers {
  explicit Buffers(size_t bytes)
      : inputs{PageBuffer(bytes), PageBuffer(bytes)}, outputs{PageBuffer(bytes), PageBuffer(bytes)} {}
  PageBuffer inputs[2], outputs[2];
};

// Elements [begin, end) of the sum into both outputs. Aligned by 8 elements but for the last ones.
void addHalf(const Buffers& buffers, size_t begin, size_t end) {
  const float *a = buffers.inputs[0].floats(), *b = buffers.inputs[1].floats();
  float *x = buffers.outputs[0].floats(), *y = buffers.outputs[1].floats();
  size_t i = begin;
  for (; i + 4 <= end; i += 4) {
    const __m128 sum = _mm_add_ps(_mm_load_ps(a + i), _mm_load_ps(b + i));
    _mm_stream_ps(x + i, sum);
    _mm_stream_ps(y + i, sum);
  }
  for (; i < end; ++i) x[i] = y[i] = a[i] + b[i];
  _mm_sfence();
}

class Pair {
 public:
  explicit Pair(const Buffers& buffers) : buffers_(buffers), helper_([this] { help(); }) { bindToCore(0); }
  ~Pair() {
    floats_ = 0;
    turn_.fetch_add(1);
    helper_.join();
  }

  void add(size_t floats) {
    floats_ = floats;
    turn_.fetch_add(1);
    addHalf(buffers_, 0, middle());
    while (done_.load() != turn_.load()) _mm_pause();
  }

 private:
  size_t middle() const { return floats_ / 2 / 16 * 16; }
  void help() {
    bindToCore(1);
    for (unsigned seen = 0;;) {
      while (turn_.load() == seen) _mm_pause();
      ++seen;
      if (floats_ == 0) return;
      addHalf(buffers_, middle(), floats_);
      done_.store(seen);
    }
  }

  const Buffers& buffers_;
  size_t floats_ = 1;
  alignas(64) std::atomic<unsigned> turn_{0};
  alignas(64) std::atomic<unsigned> done_{0};
  std::thread helper_;
};

}  // namespace

int main(int argumentCount, char** arguments) {
  const LimitSweep sweep = LimitSweep::parse(argumentCount, arguments, "limit_memory");
  const Buffers buffers(sweep.last);
  Pair pair(buffers);
  const size_t bytes = sweep.run([&](size_t size) { pair.add(size / sizeof(float)); });
  for (size_t i = 0; i < bytes / sizeof(float); ++i)
    if (buffers.outputs[0].floats()[i] != buffers.outputs[1].floats()[i] ||
        buffers.outputs[0].floats()[i] != 2 * PageBuffer::at(i)) {
      std::fprintf(stderr, "limit_memory: element %zu is wrong\n", i);
      return 1;
    }
  return 0;
}
