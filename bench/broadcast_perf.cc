// Bench of ncclBroadcast.
#include "common/bench_main.h"
#include "common/collective.h"

namespace topoccl::bench {
namespace {

class Broadcast final : public Collective {
 public:
  Broadcast()
      : Collective(
            {.program = "broadcast_perf", .name = "broadcast", .hasRoot = true, .sameEverywhere = true}) {}

  Shape shape(size_t count, int) const override { return {count, count, count, 0, 0}; }

  double busFactor(int) const override { return 1; }

  ncclResult_t start(const Call& call) const override {
    return ncclBroadcast(call.send, call.receive, call.count, call.type, call.root, call.comm, nullptr);
  }

  std::vector<Segment> expected(const Shape& shape, int, int, int root) const override {
    return {{0, shape.receive, root, 0}};
  }
};

}  // namespace
}  // namespace topoccl::bench

int main(int count, char** arguments) {
  return topoccl::bench::benchMain(count, arguments, topoccl::bench::Broadcast());
}
