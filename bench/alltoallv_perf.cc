// Bench of an all-to-all with unequal blocks, which NCCL has as groups of ncclSend and ncclRecv.
//
// Rank r sends 1 + (r + s) mod n units to rank s, so every rank sends and receives n (n+1) / 2 of them:
//
//   n = 3, units      to 0  1  2
//            from 0      1  2  3
//                 1      2  3  1
//                 2      3  1  2
#include "common/bench_main.h"
#include "common/collective.h"
#include "common/elements.h"
#include "common/failure.h"

namespace topoccl::bench {
namespace {

size_t unitsOfRank(int ranks) {
  const auto n = static_cast<size_t>(ranks);
  return n * (n + 1) / 2;
}

// Elements from one rank to the other, in either direction.
size_t blockOf(size_t all, int one, int other, int ranks) {
  return all / unitsOfRank(ranks) * static_cast<size_t>(1 + (one + other) % ranks);
}

// Where the block for, or from, `other` begins in the buffers of `one`.
size_t offsetOf(size_t all, int one, int other, int ranks) {
  size_t offset = 0;
  for (int i = 0; i < other; i++) offset += blockOf(all, one, i, ranks);
  return offset;
}

class AlltoAllV final : public Collective {
 public:
  AlltoAllV() : Collective({.program = "alltoallv_perf", .name = "send_recv", .runsInPlace = false}) {}

  Shape shape(size_t count, int ranks) const override {
    const size_t all = count - count % unitsOfRank(ranks);
    return {all, all, all, 0, 0};
  }

  double busFactor(int ranks) const override { return shareOfOthers(ranks); }

  ncclResult_t start(const Call& call) const override {
    const size_t bytes = elementType(call.type).bytes;
    const auto* send = static_cast<const std::byte*>(call.send);
    auto* receive = static_cast<std::byte*>(call.receive);
    check(ncclGroupStart());
    for (int peer = 0; peer < call.ranks; peer++) {
      const size_t count = blockOf(call.count, call.rank, peer, call.ranks);
      check(ncclSend(send, count, call.type, peer, call.comm, nullptr));
      check(ncclRecv(receive, count, call.type, peer, call.comm, nullptr));
      send += count * bytes;
      receive += count * bytes;
    }
    return ncclGroupEnd();
  }

  std::vector<Segment> expected(const Shape& shape, int rank, int ranks, int) const override {
    std::vector<Segment> segments;
    for (int source = 0; source < ranks; source++) {
      segments.push_back({offsetOf(shape.argument, rank, source, ranks),
                          blockOf(shape.argument, rank, source, ranks), source,
                          offsetOf(shape.argument, source, rank, ranks)});
    }
    return segments;
  }
};

}  // namespace
}  // namespace topoccl::bench

int main(int count, char** arguments) {
  return topoccl::bench::benchMain(count, arguments, topoccl::bench::AlltoAllV());
}
