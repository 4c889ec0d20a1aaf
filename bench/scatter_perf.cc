// Bench of ncclScatter.
#include "common/bench_main.h"
#include "common/collective.h"

namespace topoccl::bench {
namespace {

class Scatter final : public Collective {
 public:
  Scatter() : Collective({.program = "scatter_perf", .name = "scatter", .hasRoot = true}) {}

  Shape shape(size_t count, int ranks) const override { return allToBlock(count, ranks); }

  double busFactor(int ranks) const override { return shareOfOthers(ranks); }

  ncclResult_t start(const Call& call) const override {
    return ncclScatter(call.send, call.receive, call.count, call.type, call.root, call.comm, nullptr);
  }

  std::vector<Segment> expected(const Shape& shape, int rank, int, int root) const override {
    return {{0, shape.receive, root, static_cast<size_t>(rank) * shape.receive}};
  }
};

}  // namespace
}  // namespace topoccl::bench

int main(int count, char** arguments) {
  return topoccl::bench::benchMain(count, arguments, topoccl::bench::Scatter());
}
