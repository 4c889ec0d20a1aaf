// Bench of ncclAllGather.
#include "common/bench_main.h"
#include "common/collective.h"

namespace topoccl::bench {
namespace {

class AllGather final : public Collective {
 public:
  AllGather() : Collective({.program = "all_gather_perf", .name = "all_gather", .sameEverywhere = true}) {}

  Shape shape(size_t count, int ranks) const override { return blockToAll(count, ranks); }

  double busFactor(int ranks) const override { return shareOfOthers(ranks); }

  ncclResult_t start(const Call& call) const override {
    return ncclAllGather(call.send, call.receive, call.count, call.type, call.comm, nullptr);
  }

  std::vector<Segment> expected(const Shape& shape, int, int ranks, int) const override {
    return blocksOfAll(shape.argument, ranks, 0);
  }
};

}  // namespace
}  // namespace topoccl::bench

int main(int count, char** arguments) {
  return topoccl::bench::benchMain(count, arguments, topoccl::bench::AllGather());
}
