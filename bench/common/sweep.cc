#include "common/sweep.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "common/failure.h"
#include "common/variables.h"

namespace topoccl::bench {
namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<int> oneOrAll(int wanted, int count) {
  if (wanted != kAll) return {wanted};
  std::vector<int> all;
  for (int i = 0; i < count; i++) all.push_back(i);
  return all;
}

}  // namespace

Sweep::Sweep(const Options& options, uint64_t maxBytes, const LocalRanks& ranks, Board& board,
             Reports reports)
    : options_(options),
      maxBytes_(maxBytes),
      ranks_(ranks),
      board_(board),
      reports_(reports),
      checker_(ranks, board),
      watchdog_(options.timeoutSeconds, [&board] { board.fail(); }),
      wantedBandwidth_(numberVariable("NCCL_TESTS_MIN_BW", -1, -1, 1e12)) {}

Summary Sweep::run() {
  const std::vector<Combination> all = combinations();
  const int roots = ranks_.ranks();
  if (ranks_.collective().traits().hasRoot && options_.root >= roots) {
    throw Failure(ExitCode::InvalidUsage, "root " + std::to_string(options_.root) + " of " +
                                              std::to_string(roots) + " ranks: must be less");
  }
  for (int cycle = 0; options_.cycles == 0 || cycle < options_.cycles; cycle++) {
    for (const Combination& combination : all) {
      for (const int root :
           ranks_.collective().traits().hasRoot ? oneOrAll(options_.root, roots) : std::vector{-1}) {
        runCombination(combination, root);
      }
    }
  }
  const double average = bandwidthCount_ > 0 ? bandwidthSum_ / bandwidthCount_ : 0;
  return {failedChecks_, average, wantedBandwidth_};
}

// With "all": what the library supports; what it does not is named on stderr.
std::vector<Sweep::Combination> Sweep::combinations() {
  const bool reduces = ranks_.collective().traits().reduces;
  const bool isProbing = options_.type == kAll || (reduces && options_.op == kAll);
  std::vector<Combination> found;
  for (const int type : oneOrAll(options_.type, kElementTypeCount)) {
    for (const int op : reduces ? oneOrAll(options_.op, kOperatorNameCount) : std::vector{kNoOperator}) {
      const Combination combination{static_cast<ncclDataType_t>(type), op};
      std::string reason;
      if (!isProbing || isSupported(combination, reason)) {
        found.push_back(combination);
      } else if (board_.driver() == 0) {
        std::fprintf(stderr, "# left out: %s %s (%s)\n", elementType(combination.type).name, operatorName(op),
                     reason.c_str());
      }
    }
  }
  return found;
}

bool Sweep::isSupported(Combination combination, std::string& reason) {
  const Work work = ranks_.work(elementType(combination.type).bytes, combination.type, combination.op, 0);
  const ncclResult_t result = ranks_.start(work, false, 0);
  if (result == ncclSuccess) return true;
  if (result != ncclInvalidUsage && result != ncclInvalidArgument) check(result);
  reason = ncclGetLastError(nullptr);
  return false;
}

uint64_t Sweep::nextSize(uint64_t bytes) const {
  const bool isFactor = options_.stepFactor > 1;
  const uint64_t next = isFactor ? bytes * options_.stepFactor : bytes + options_.stepBytes;
  // Size 0 times a factor stays 0; no step at all means one size.
  return next > bytes ? next : maxBytes_ + 1;
}

void Sweep::runCombination(Combination combination, int root) {
  ranks_.misalignFor(elementType(combination.type));
  warmUp(combination, root);
  for (uint64_t bytes = options_.minBytes; bytes <= maxBytes_; bytes = nextSize(bytes)) {
    runRow(bytes, combination, root);
  }
}

void Sweep::warmUp(Combination combination, int root) {
  board_.barrier();
  for (uint64_t bytes = options_.minBytes; bytes <= maxBytes_; bytes = std::max<uint64_t>(1, bytes * 2)) {
    watchdog_.pet();
    const Work work = ranks_.work(bytes, combination.type, combination.op, root);
    for (int i = 0; i < options_.warmups; i++) check(ranks_.start(work, false, i));
  }
}

void Sweep::runRow(uint64_t bytes, Combination combination, int root) {
  const Work work = ranks_.work(bytes, combination.type, combination.op, root);
  Row row;
  row.bytes = work.largerBytes();
  row.count = work.shape.argument;
  row.type = work.type->name;
  row.root = root;
  row.op = operatorName(combination.op);
  if (options_.explain && reports_.text != nullptr) {
    check(topocclCommExplain(ranks_.comm(0), ranks_.collective().traits().name, row.count, combination.type,
                             &row.plan.emplace()));
  }
  if (reports_.text != nullptr) {
    reports_.text->beginRow(row);
    reports_.json->beginRow(row);
  }
  for (const bool isInPlace : {false, true}) {
    const bool isRun = !isInPlace || ranks_.collective().traits().runsInPlace;
    const Measurement measurement = isRun ? measure(work, isInPlace) : Measurement{};
    if (isRun) {
      bandwidthSum_ += measurement.busBandwidth;
      bandwidthCount_++;
    }
    if (reports_.text == nullptr) continue;
    reports_.text->measurement(measurement, isInPlace);
    reports_.json->measurement(measurement, isInPlace);
    if (isRun) reports_.csv->measurement(row, measurement, isInPlace);
  }
  if (reports_.text != nullptr) {
    reports_.text->endRow(row);
    reports_.json->endRow(row, ranks_.collective().traits().program);
  }
}

Measurement Sweep::measure(const Work& work, bool isInPlace) {
  Measurement measurement;
  watchdog_.pet();
  check(ranks_.start(work, isInPlace, 0));
  // Twice: the first barrier takes up the wait for slow ranks, so all leave the second one together.
  board_.barrier();
  board_.barrier();
  std::vector<double> iterations;
  const double seconds = overDrivers(timeLoop(work, isInPlace, iterations));
  const auto bytes = static_cast<double>(work.largerBytes());
  measurement.microseconds = seconds * 1e6;
  measurement.algorithmBandwidth = bytes / 1e9 / seconds;
  measurement.busBandwidth = measurement.algorithmBandwidth * ranks_.collective().busFactor(ranks_.ranks());
  if (options_.perIteration) measurement.iterations = gatherIterations(iterations);
  checkRow(work, isInPlace, measurement);
  return measurement;
}

// Seconds per call of this driver.
double Sweep::timeLoop(const Work& work, bool isInPlace, std::vector<double>& iterations) const {
  if (options_.perIteration) iterations.reserve(static_cast<size_t>(options_.iterations));
  const auto start = Clock::now();
  for (int i = 0; i < options_.iterations; i++) {
    const auto iterationStart = options_.perIteration ? Clock::now() : start;
    iteration(work, isInPlace, i);
    if (options_.perIteration) iterations.push_back(secondsSince(iterationStart) * 1e6 / options_.aggregated);
  }
  return secondsSince(start) / options_.iterations / options_.aggregated;
}

void Sweep::iteration(const Work& work, bool isInPlace, int number) const {
  const bool isGroup = options_.aggregated > 1;
  if (isGroup) check(ncclGroupStart());
  for (int i = 0; i < options_.aggregated; i++) {
    check(ranks_.start(work, isInPlace, number * options_.aggregated + i));
    if (options_.blocking == Blocking::EveryCall && !isGroup) board_.barrier();
  }
  if (isGroup) check(ncclGroupEnd());
  const bool isBarrier =
      options_.blocking == Blocking::EveryIteration || (options_.blocking == Blocking::EveryCall && isGroup);
  if (isBarrier) board_.barrier();
}

double Sweep::overDrivers(double mine) {
  const std::vector<double> all = board_.gather(mine);
  switch (options_.averaging) {
    case Averaging::RankZero:
      return all.front();
    case Averaging::Minimum:
      return *std::min_element(all.begin(), all.end());
    case Averaging::Maximum:
      return *std::max_element(all.begin(), all.end());
    case Averaging::Average:
      break;
  }
  double sum = 0;
  for (const double value : all) sum += value;
  return sum / static_cast<double>(all.size());
}

std::vector<std::vector<double>> Sweep::gatherIterations(const std::vector<double>& mine) {
  std::vector<std::vector<double>> all(static_cast<size_t>(board_.drivers()));
  for (const double value : mine) {
    const std::vector<double> values = board_.gather(value);
    for (size_t i = 0; i < values.size(); i++) all[i].push_back(values[i]);
  }
  return all;
}

void Sweep::checkRow(const Work& work, bool isInPlace, Measurement& measurement) {
  for (int i = 0; i < options_.checks; i++) {
    watchdog_.pet();
    const CheckResult result = checker_.run(work, isInPlace, ++seed_);
    measurement.wrong = measurement.wrong.value_or(0) + result.wrong;
    failedChecks_ += result.failedRanks > 0 ? result.failedRanks : result.sameBits ? 0 : 1;
    if (result.wrong > 0) break;
  }
  if (options_.checks > 0 || !options_.compareBits) return;
  if (!checker_.compareBits(work, isInPlace, ++seed_).sameBits) failedChecks_++;
}

}  // namespace topoccl::bench
