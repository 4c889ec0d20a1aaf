// Bench of ncclSend and ncclRecv: around a ring, to the next rank and from the previous one.
#include "common/bench_main.h"
#include "common/collective.h"
#include "common/failure.h"

namespace topoccl::bench {
namespace {

class SendRecv final : public Collective {
 public:
  SendRecv() : Collective({.program = "sendrecv_perf", .name = "send_recv", .runsInPlace = false}) {}

  Shape shape(size_t count, int) const override { return {count, count, count, 0, 0}; }

  double busFactor(int) const override { return 1; }

  ncclResult_t start(const Call& call) const override {
    const int next = (call.rank + 1) % call.ranks;
    const int previous = (call.rank + call.ranks - 1) % call.ranks;
    check(ncclGroupStart());
    check(ncclSend(call.send, call.count, call.type, next, call.comm, nullptr));
    check(ncclRecv(call.receive, call.count, call.type, previous, call.comm, nullptr));
    return ncclGroupEnd();
  }

  std::vector<Segment> expected(const Shape& shape, int rank, int ranks, int) const override {
    return {{0, shape.receive, (rank + ranks - 1) % ranks, 0}};
  }
};

}  // namespace
}  // namespace topoccl::bench

int main(int count, char** arguments) {
  return topoccl::bench::benchMain(count, arguments, topoccl::bench::SendRecv());
}
