// Bench of ncclGather.
#include "common/bench_main.h"
#include "common/collective.h"

namespace topoccl::bench {
namespace {

class Gather final : public Collective {
 public:
  Gather() : Collective({.program = "gather_perf", .name = "gather", .hasRoot = true}) {}

  Shape shape(size_t count, int ranks) const override { return blockToAll(count, ranks); }

  double busFactor(int ranks) const override { return shareOfOthers(ranks); }

  ncclResult_t start(const Call& call) const override {
    return ncclGather(call.send, call.receive, call.count, call.type, call.root, call.comm, nullptr);
  }

  std::vector<Segment> expected(const Shape& shape, int rank, int ranks, int root) const override {
    if (rank != root) return {};
    return blocksOfAll(shape.argument, ranks, 0);
  }
};

}  // namespace
}  // namespace topoccl::bench

int main(int count, char** arguments) {
  return topoccl::bench::benchMain(count, arguments, topoccl::bench::Gather());
}
