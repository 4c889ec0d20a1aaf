// The check, watching collectives that do wrong on purpose.
#include "common/checker.h"

#include <gtest/gtest.h>

#include <cstring>

namespace topoccl::bench {
namespace {

enum class Fault {
  None,
  InputChanged,
  WrittenBefore,
  WrittenAfter,
  InputWrittenBefore,
  NotWritten,
  IdleRankWritten,
};

// A gather of one rank, whose root may be another one that does not exist.
class FaultyGather final : public Collective {
 public:
  explicit FaultyGather(Fault fault)
      : Collective({.program = "faulty_perf", .name = "gather", .hasRoot = true}), fault_(fault) {}

  Shape shape(size_t count, int) const override { return {count, count, count, 0, 0}; }
  double busFactor(int) const override { return 1; }

  ncclResult_t start(const Call& call) const override {
    auto* const send = static_cast<std::byte*>(const_cast<void*>(call.send));
    auto* const receive = static_cast<std::byte*>(call.receive);
    const size_t bytes = call.count * elementType(call.type).bytes;
    if (call.root == call.rank && fault_ != Fault::NotWritten) std::memmove(receive, send, bytes);
    if (fault_ == Fault::InputChanged) send[5] ^= std::byte{1};
    if (fault_ == Fault::InputWrittenBefore) send[-1] ^= std::byte{1};
    if (fault_ == Fault::WrittenBefore) receive[-1] ^= std::byte{1};
    if (fault_ == Fault::WrittenAfter) receive[bytes] ^= std::byte{1};
    if (fault_ == Fault::IdleRankWritten) receive[bytes - 1] ^= std::byte{1};
    return ncclSuccess;
  }

  std::vector<Segment> expected(const Shape& shape, int rank, int, int root) const override {
    if (rank != root) return {};
    return {{0, shape.receive, 0, 0}};
  }

 private:
  Fault fault_;
};

class Checked {
 public:
  CheckResult run(Fault fault, int root, bool isInPlace) {
    const FaultyGather collective(fault);
    const LocalRanks ranks(collective, options_, {nullptr}, 0, 1, kBytes);
    Board board(memory_.data(), 1, 0);
    return Checker(ranks, board).run(ranks.work(kBytes, ncclFloat32, kNoOperator, root), isInPlace, 1);
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  static constexpr size_t kBytes = 4096;
  Options options_;
  std::vector<Line> memory_ = std::vector<Line>(Board::bytesNeeded(1) / sizeof(Line) + 1);
};

TEST(Checker, ContentWithWhatIsRight) {
  for (const int root : {0, 1}) {
    for (const bool isInPlace : {false, true}) {
      const CheckResult result = Checked().run(Fault::None, root, isInPlace);
      EXPECT_EQ(result.wrong, 0U) << root << isInPlace;
      EXPECT_EQ(result.failedRanks, 0) << root << isInPlace;
    }
  }
}

TEST(Checker, FindsWritesOutsideOfTheResult) {
  for (const Fault fault :
       {Fault::InputChanged, Fault::InputWrittenBefore, Fault::WrittenBefore, Fault::WrittenAfter}) {
    const CheckResult result = Checked().run(fault, 0, false);
    EXPECT_EQ(result.wrong, 0U) << static_cast<int>(fault);
    EXPECT_EQ(result.failedRanks, 1) << static_cast<int>(fault);
  }
}

TEST(Checker, FindsWhatWasNotWritten) {
  EXPECT_EQ(Checked().run(Fault::NotWritten, 0, false).wrong, 1024U);
}

TEST(Checker, FindsWritesToARankThatHasNoResult) {
  for (const bool isInPlace : {false, true}) {
    const CheckResult result = Checked().run(Fault::IdleRankWritten, 1, isInPlace);
    EXPECT_EQ(result.wrong, 1U) << isInPlace;
    EXPECT_EQ(result.failedRanks, 1) << isInPlace;
  }
}

}  // namespace
}  // namespace topoccl::bench
