#include "common/checker.h"

#include <cstring>

#include "common/failure.h"
#include "common/variables.h"
#include "common/verify.h"

namespace topoccl::bench {
namespace {

// Result buffers are filled with this first: an element nobody wrote is wrong, whatever the row before left.
constexpr int kUnwritten = 0xa5;

Stream streamOf(const Pattern& pattern, const Segment& segment) {
  if (segment.source == Segment::kReduced) return pattern.reduced(segment.first + segment.count);
  return pattern.input(segment.source);
}

}  // namespace

std::optional<InjectedFault> injectedFault() {
  const auto numbers = numbersVariable("TOPOCCL_BENCH_INJECT", "RANK:ELEMENT:BIT");
  if (numbers.empty()) return std::nullopt;
  return InjectedFault{static_cast<int>(numbers[0]), numbers[1], static_cast<int>(numbers[2])};
}

void Checker::prepare(const Pattern& pattern, const Work& work, int local, bool isInPlace) const {
  GuardedBuffer& receive = ranks_.receiveBuffer(local);
  const size_t receiveEnd = isInPlace ? work.largerBytes() : work.receiveBytes;
  std::memset(receive.data(), kUnwritten, receiveEnd);
  receive.raiseGuards(receiveEnd);
  if (!isInPlace) ranks_.sendBuffer(local).raiseGuards(work.sendBytes);
  fillFromStream(*work.type, pattern.input(ranks_.rank(local)), 0, work.shape.send,
                 ranks_.input(work, local, isInPlace));
}

void Checker::inject(const Work& work, int local, bool isInPlace) const {
  if (!fault_ || fault_->rank != ranks_.rank(local) || fault_->element > work.shape.receive) return;
  std::byte* element = ranks_.output(work, local, isInPlace) + fault_->element * work.type->bytes;
  storeBits(*work.type, loadBits(*work.type, element) ^ (uint64_t{1} << fault_->bit), element);
}

uint64_t Checker::wrongElements(const Pattern& pattern, const Work& work, int local, bool isInPlace) const {
  uint64_t wrong = 0;
  const std::byte* output = ranks_.output(work, local, isInPlace);
  for (const Segment& segment :
       ranks_.collective().expected(work.shape, ranks_.rank(local), ranks_.ranks(), work.root)) {
    const uint64_t tolerance = segment.source == Segment::kReduced ? pattern.toleranceUlp() : 0;
    wrong += countWrong(*work.type, streamOf(pattern, segment), segment.first, segment.count,
                        output + segment.offset * work.type->bytes, tolerance);
  }
  return wrong;
}

// Elements of the input that changed and guard bytes that were overwritten.
uint64_t Checker::damage(const Pattern& pattern, const Work& work, int local, bool isInPlace) const {
  const size_t receiveEnd = isInPlace ? work.largerBytes() : work.receiveBytes;
  const uint64_t outside = ranks_.receiveBuffer(local).brokenGuards(receiveEnd) +
                           (isInPlace ? 0 : ranks_.sendBuffer(local).brokenGuards(work.sendBytes));
  const uint64_t input = isInPlace ? 0
                                   : countWrong(*work.type, pattern.input(ranks_.rank(local)), 0,
                                                work.shape.send, ranks_.input(work, local, false), 0);
  if (outside + input > 0) {
    std::fprintf(
        stderr,
        "# error: rank %d, %zu bytes: %llu bytes written out of bounds, %llu input elements changed\n",
        ranks_.rank(local), work.largerBytes(), static_cast<unsigned long long>(outside),
        static_cast<unsigned long long>(input));
  }
  return outside + input;
}

void Checker::call(const Pattern& pattern, const Work& work, bool isInPlace) const {
  for (int i = 0; i < ranks_.count(); i++) prepare(pattern, work, i, isInPlace);
  check(ranks_.start(work, isInPlace, 0));
  for (int i = 0; i < ranks_.count(); i++) inject(work, i, isInPlace);
}

CheckResult Checker::agree(const CheckResult& mine, const Work& work, bool isInPlace) {
  struct Vote {
    CheckResult result;
    uint64_t hash;
  } vote{mine, 0};
  const auto hashOf = [&](int local) {
    return hashBytes(ranks_.output(work, local, isInPlace), work.receiveBytes);
  };
  const bool isComparing = ranks_.collective().sameEverywhere();
  if (isComparing) vote.hash = hashOf(0);
  for (int i = 1; isComparing && i < ranks_.count(); i++) vote.result.sameBits &= hashOf(i) == vote.hash;
  CheckResult all;
  const auto votes = board_.gather(vote);
  for (const Vote& other : votes) {
    all.wrong += other.result.wrong;
    all.failedRanks += other.result.failedRanks;
    all.sameBits = all.sameBits && other.result.sameBits && other.hash == votes.front().hash;
  }
  if (!all.sameBits && all.wrong == 0 && board_.driver() == 0) {
    std::fprintf(stderr, "# error: %zu bytes: the ranks' results differ in bits\n", work.largerBytes());
  }
  return all;
}

CheckResult Checker::run(const Work& work, bool isInPlace, uint64_t seed) {
  const Pattern pattern(*work.type, work.op, ranks_.ranks(), seed);
  call(pattern, work, isInPlace);
  CheckResult mine;
  for (int i = 0; i < ranks_.count(); i++) {
    const uint64_t wrong = wrongElements(pattern, work, i, isInPlace);
    const uint64_t damaged = damage(pattern, work, i, isInPlace);
    mine.wrong += wrong;
    mine.failedRanks += wrong + damaged > 0 ? 1 : 0;
  }
  return agree(mine, work, isInPlace);
}

CheckResult Checker::compareBits(const Work& work, bool isInPlace, uint64_t seed) {
  call(Pattern(*work.type, work.op, ranks_.ranks(), seed), work, isInPlace);
  return agree(CheckResult{}, work, isInPlace);
}

}  // namespace topoccl::bench
