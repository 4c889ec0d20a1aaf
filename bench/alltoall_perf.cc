// Bench of ncclAlltoAll.
#include "common/bench_main.h"
#include "common/collective.h"

namespace topoccl::bench {
namespace {

class AlltoAll final : public Collective {
 public:
  AlltoAll() : Collective({.program = "alltoall_perf", .name = "all_to_all", .runsInPlace = false}) {}

  Shape shape(size_t count, int ranks) const override {
    const auto n = static_cast<size_t>(ranks);
    const size_t block = count / n;
    return {n * block, n * block, block, 0, 0};
  }

  double busFactor(int ranks) const override { return shareOfOthers(ranks); }

  ncclResult_t start(const Call& call) const override {
    return ncclAlltoAll(call.send, call.receive, call.count, call.type, call.comm, nullptr);
  }

  std::vector<Segment> expected(const Shape& shape, int rank, int ranks, int) const override {
    return blocksOfAll(shape.argument, ranks, static_cast<size_t>(rank) * shape.argument);
  }
};

}  // namespace
}  // namespace topoccl::bench

int main(int count, char** arguments) {
  return topoccl::bench::benchMain(count, arguments, topoccl::bench::AlltoAll());
}
