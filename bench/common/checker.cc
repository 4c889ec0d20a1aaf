#include "common/checker.h"

#include <algorithm>
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

// Of elements `first` to `end` of the receive buffer, those that are not as prepare() left them.
uint64_t Checker::touchedElements(const Pattern& pattern, const Work& work, int local, bool isInPlace,
                                  size_t first, size_t end) const {
  if (first == end) return 0;
  const std::byte* buffer = ranks_.receiveBuffer(local).data();
  const size_t bytes = work.type->bytes;
  const auto rank = static_cast<size_t>(ranks_.rank(local));
  const size_t input = isInPlace ? work.shape.sendOffset * rank : end;
  const size_t inputFirst = std::clamp(input, first, end);
  const size_t inputEnd = std::clamp(input + work.shape.send, first, end);
  const auto unwritten = [&](size_t from, size_t to) {
    return countWrong(*work.type, Stream(kPeriod * bytes, std::byte{kUnwritten}), 0, to - from,
                      buffer + from * bytes, 0);
  };
  return unwritten(first, inputFirst) +
         countWrong(*work.type, pattern.input(ranks_.rank(local)), inputFirst - input, inputEnd - inputFirst,
                    buffer + inputFirst * bytes, 0) +
         unwritten(inputEnd, end);
}

// Elements of the receive buffer: of the result, and those that a call must leave alone.
uint64_t Checker::wrongElements(const Pattern& pattern, const Work& work, int local, bool isInPlace) const {
  uint64_t wrong = 0;
  const int rank = ranks_.rank(local);
  const size_t start = isInPlace ? work.shape.receiveOffset * static_cast<size_t>(rank) : 0;
  const size_t end = isInPlace ? std::max(work.shape.send, work.shape.receive) : work.shape.receive;
  const std::byte* buffer = ranks_.receiveBuffer(local).data();
  size_t done = 0;
  for (const Segment& segment : ranks_.collective().expected(work.shape, rank, ranks_.ranks(), work.root)) {
    const size_t first = start + segment.offset;
    const uint64_t tolerance = segment.source == Segment::kReduced ? pattern.toleranceUlp() : 0;
    wrong += touchedElements(pattern, work, local, isInPlace, done, first);
    wrong += countWrong(*work.type, streamOf(pattern, segment), segment.first, segment.count,
                        buffer + first * work.type->bytes, tolerance);
    done = first + segment.count;
  }
  return wrong + touchedElements(pattern, work, local, isInPlace, done, end);
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
  const bool isComparing = ranks_.collective().traits().sameEverywhere;
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
