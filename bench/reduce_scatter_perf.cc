// Bench of ncclReduceScatter.
#include "common/bench_main.h"
#include "common/collective.h"

namespace topoccl::bench {
namespace {

class ReduceScatter final : public Collective {
 public:
  ReduceScatter()
      : Collective({.program = "reduce_scatter_perf", .name = "reduce_scatter", .reduces = true}) {}

  Shape shape(size_t count, int ranks) const override { return allToBlock(count, ranks); }

  double busFactor(int ranks) const override { return shareOfOthers(ranks); }

  ncclResult_t start(const Call& call) const override {
    return ncclReduceScatter(call.send, call.receive, call.count, call.type, call.op, call.comm, nullptr);
  }

  std::vector<Segment> expected(const Shape& shape, int rank, int, int) const override {
    return {{0, shape.receive, Segment::kReduced, static_cast<size_t>(rank) * shape.receive}};
  }
};

}  // namespace
}  // namespace topoccl::bench

int main(int count, char** arguments) {
  return topoccl::bench::benchMain(count, arguments, topoccl::bench::ReduceScatter());
}
