// Bench of ncclAllReduce.
#include "common/bench_main.h"
#include "common/collective.h"

namespace topoccl::bench {
namespace {

class AllReduce final : public Collective {
 public:
  AllReduce()
      : Collective(
            {.program = "all_reduce_perf", .name = "all_reduce", .reduces = true, .sameEverywhere = true}) {}

  Shape shape(size_t count, int) const override { return {count, count, count, 0, 0}; }

  // Every rank must send and receive (n-1)/n of the buffer twice: once to reduce, once to gather.
  double busFactor(int ranks) const override { return 2 * shareOfOthers(ranks); }

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
