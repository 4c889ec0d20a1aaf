// The command line: nccl-tests' letters and names with its defaults, and a few of our own.
#pragma once

#include <cstdint>
#include <string>

#include "common/guarded_buffer.h"

namespace topoccl::bench {

enum class Averaging { RankZero = 0, Average = 1, Minimum = 2, Maximum = 3 };  // -a
// -z: when all ranks wait for each other inside the timed loop.
enum class Blocking { Never = 0, EveryCall = 1, NoBarrier = 2, EveryIteration = 3 };

inline constexpr int kAll = -1;  // of types, operators, roots

struct Options {
  // Ranks.
  int processes = 0;  // 0: one per device, or 1 if -t or -g is given
  int threads = 1;
  int devicesPerThread = 1;
  bool parallelInit = false;
  bool bindToCores = false;
  // Sizes.
  uint64_t minBytes = uint64_t{32} << 20;
  uint64_t maxBytes = uint64_t{32} << 20;
  uint64_t stepBytes = uint64_t{1} << 20;
  uint64_t stepFactor = 1;
  uint64_t unalign = 0;  // elements
  // Repetition.
  int iterations = 20;
  int aggregated = 1;
  int warmups = 1;
  int cycles = 1;  // 0: forever
  // What.
  int type = 7;  // ncclDataType_t, or kAll
  int op = 0;    // ncclRedOp_t, kMulSum or kAll
  int root = 0;  // or kAll
  BufferKind buffers = BufferKind::Ordinary;
  // Checking and reporting.
  int checks = 1;
  bool compareBits = false;  // even with checks = 0
  Blocking blocking = Blocking::Never;
  Averaging averaging = Averaging::Average;
  int timeoutSeconds = 0;  // 0: none
  bool reportCpuTime = false;
  bool timestamps = false;
  bool perIteration = false;
  int perIterationSkip = 0;
  bool reportMemory = false;
  bool explain = false;
  std::string outputFile;  // -J
  std::string csvFile;
  bool help = false;
};

// Throws Failure with the exit code that nccl-tests has for the mistake. Options that only mean something
// with CUDA are accepted and said to be ignored on stderr if `isTalking`.
Options parseOptions(int count, char** arguments, bool isTalking);

std::string usage(const std::string& program);

}  // namespace topoccl::bench
