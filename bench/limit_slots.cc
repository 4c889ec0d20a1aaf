// limit_slots: what the library can't beat with its own slots: two processes, a core each, that add up
// through two slot rings by a loop written for this one purpose. No schedule, no interpreter, no checks of
// what arrives.
//
// One line per size: "BYTES MICROSECONDS", BYTES of one buffer, floats. Up to 32 KiB each rank sends all it
// has (one-shot); above, each reduces one half and sends back the result (two-shot), as the library does.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "kernels/combine_args.h"
#include "kernels/slot_ring.h"
#include "limit_sweep.h"

namespace {

using namespace topoccl;
using bench::bindToCore;
using bench::LimitSweep;
using bench::PageBuffer;

constexpr size_t kOneShotBytes = 32 << 10;
constexpr RingShape kShape{4, 128 << 10, 1};

// One rank's ends, and its buffers.
class Rank {
 public:
  Rank(int rank, void* const rings[2], size_t bytes)
      : rank_(rank),
        writer_(RingView(rings[rank], kShape), Protocol::Packet),
        reader_(RingView(rings[1 - rank], kShape), Protocol::Packet, 0),
        in_(bytes),
        out_(bytes) {}

  void allReduce(size_t bytes) {
    const size_t floats = bytes / sizeof(float);
    if (bytes <= kInlineBytes) {
      inlined(floats);
    } else if (bytes <= kOneShotBytes) {
      fill(in_.floats(), floats);
      take(in_.floats(), out_.floats(), floats);
    } else {
      twoShot(floats);
    }
  }

  bool right(size_t floats) const {
    for (size_t i = 0; i < floats; ++i)
      if (out_.floats()[i] != 2 * PageBuffer::at(i)) return false;
    return true;
  }

 private:
  float* slotToFill() {
    while (!writer_.ready()) {
    }
    return reinterpret_cast<float*>(RingView::data(writer_.header()));
  }
  const float* slotToTake() {
    while (!reader_.ready()) {
    }
    return reinterpret_cast<const float*>(RingView::data(reader_.header()));
  }

  void inlined(size_t floats) {
    slotToFill();
    std::memcpy(writer_.header().payload, in_.floats(), floats * sizeof(float));
    writer_.publish();
    slotToTake();
    float other[kInlineBytes / sizeof(float)];
    std::memcpy(other, reader_.header().payload, floats * sizeof(float));
    reader_.free();
    for (size_t i = 0; i < floats; ++i) out_.floats()[i] = in_.floats()[i] + other[i];
  }

  void fill(const float* from, size_t floats) {
    copy(from, slotToFill(), floats);
    writer_.publish();
  }
  void take(const float* own, float* to, size_t floats) {
    const float* const got = slotToTake();
    add(own, got, to, nullptr, floats);
    reader_.free();
  }

  // Rank r has half r; a piece is what fits into a slot.
  void twoShot(size_t floats) {
    constexpr size_t kPiece = kShape.slotBytes / sizeof(float);
    const size_t middle = floats / 2 / 16 * 16, begins[] = {0, middle}, ends[] = {middle, floats};
    const size_t mine = begins[rank_], others = begins[1 - rank_];
    const size_t mineCount = ends[rank_] - mine, othersCount = ends[1 - rank_] - others;
    for (size_t at = 0; at < std::max(mineCount, othersCount); at += kPiece) {
      const size_t give = at < othersCount ? std::min(kPiece, othersCount - at) : 0;
      const size_t keep = at < mineCount ? std::min(kPiece, mineCount - at) : 0;
      if (give != 0) fill(in_.floats() + others + at, give);
      if (keep != 0) {
        const float* const got = slotToTake();
        add(in_.floats() + mine + at, got, out_.floats() + mine + at, slotToFill(), keep);
        reader_.free();
        writer_.publish();
      }
      if (give != 0) {
        copy(slotToTake(), out_.floats() + others + at, give);
        reader_.free();
      }
    }
  }

  static void copy(const float* from, float* to, size_t floats) {
    const void* inputs[] = {from};
    void* outputs[] = {to};
    CombineArgs args;
    args.inputs = inputs;
    args.inputCount = 1;
    args.outputs = outputs;
    args.outputCount = 1;
    args.count = floats * sizeof(float);
    hostCopy(args);
  }
  static void add(const float* a, const float* b, float* to, float* too, size_t floats) {
    static const CombineFunction sum = hostCombine(DataType::Float32, Operator::Sum);
    const void* inputs[] = {a, b};
    void* outputs[] = {to, too};
    CombineArgs args;
    args.inputs = inputs;
    args.inputCount = 2;
    args.outputs = outputs;
    args.outputCount = too == nullptr ? 1 : 2;
    args.count = floats;
    sum(args);
  }

  int rank_;
  SlotWriter writer_;
  SlotReader reader_;
  PageBuffer in_, out_;
};

}  // namespace

int main(int argumentCount, char** arguments) {
  const LimitSweep sweep = LimitSweep::parse(argumentCount, arguments, "limit_slots");
  const size_t ringBytes = RingView::bytes(kShape);
  void* const memory =
      ::mmap(nullptr, 2 * ringBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return std::perror("mmap"), 1;
  void* const rings[] = {memory, static_cast<char*>(memory) + ringBytes};
  const pid_t child = ::fork();
  if (child < 0) return std::perror("fork"), 1;
  const int rank = child == 0 ? 1 : 0;
  bindToCore(rank);
  Rank self(rank, rings, sweep.last);
  const size_t bytes = sweep.run([&](size_t size) { self.allReduce(size); }, rank == 0);
  const bool right = self.right(bytes / sizeof(float));
  if (rank == 1) ::_exit(right ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (right && status == 0) return 0;
  std::fprintf(stderr, "limit_slots: a sum is wrong\n");
  return 1;
}
