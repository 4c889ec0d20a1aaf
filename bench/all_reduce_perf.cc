// Bench of ncclAllReduce.
#include "common/bench_main.h"
#include "common/collective.h"

namespace topoccl::bench {
namespace {

class AllReduce final : public Collective {
 public:
  const char* program() const override { return "all_reduce_perf"; }
  const char* name() const override { return "all_reduce"; }
  bool reduces() const override { return true; }
  bool hasRoot() const override { return false; }
  bool sameEverywhere() const override { return true; }

  Shape shape(size_t count, int) const override { return {count, count, count, 0, 0}; }

  double algorithmBytes(const Shape& shape, size_t elementBytes, int) const override {
    return static_cast<double>(shape.argument * elementBytes);
  }

  // Every rank must send and receive 2 (n-1)/n of the buffer at least: once to reduce, once to gather.
  double busFactor(int ranks) const override { return 2.0 * (ranks - 1) / ranks; }

  ncclResult_t start(const Call& call) const override {
    return ncclAllReduce(call.send, call.receive, call.count, call.type, call.op, call.comm, nullptr);
  }

  std::vector<Segment> expected(const Shape& shape, int, int, int) const override {
    return {{0, shape.receive, Segment::kReduced, 0}};
  }
};

}  // namespace
}  // namespace topoccl::bench

int main(int count, char** arguments) {
  return topoccl::bench::benchMain(count, arguments, topoccl::bench::AllReduce());
}
