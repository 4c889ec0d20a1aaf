// Bench of ncclReduce.
#include "common/bench_main.h"
#include "common/collective.h"

namespace topoccl::bench {
namespace {

class Reduce final : public Collective {
 public:
  Reduce() : Collective({.program = "reduce_perf", .name = "reduce", .reduces = true, .hasRoot = true}) {}

  Shape shape(size_t count, int) const override { return {count, count, count, 0, 0}; }

  double busFactor(int) const override { return 1; }

  ncclResult_t start(const Call& call) const override {
    return ncclReduce(call.send, call.receive, call.count, call.type, call.op, call.root, call.comm, nullptr);
  }

  std::vector<Segment> expected(const Shape& shape, int rank, int, int root) const override {
    if (rank != root) return {};
    return {{0, shape.receive, Segment::kReduced, 0}};
  }
};

}  // namespace
}  // namespace topoccl::bench

int main(int count, char** arguments) {
  return topoccl::bench::benchMain(count, arguments, topoccl::bench::Reduce());
}
