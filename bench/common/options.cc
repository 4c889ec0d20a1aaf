#include "common/options.h"

#include <getopt.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "common/elements.h"
#include "common/failure.h"
#include "common/size_text.h"

namespace topoccl::bench {
namespace {

[[noreturn]] void reject(const std::string& message) {
  throw Failure(ExitCode::BadArguments, message);
}

// One option's value on its way into Options.
struct Argument {
  const char* name;
  const char* text;
  bool isTalking;

  [[noreturn]] void reject(const std::string& allowed) const {
    bench::reject("invalid value \"" + std::string(text) + "\" for '" + name + "': must be " + allowed);
  }

  int integer(int low, int high = INT_MAX) const {
    char* end = nullptr;
    const long value = std::strtol(text, &end, 0);
    if (end == text || *end != '\0' || value < low || value > high) {
      reject("a number from " + std::to_string(low) + (high == INT_MAX ? "" : " to " + std::to_string(high)));
    }
    return static_cast<int>(value);
  }

  bool flag() const { return integer(INT_MIN) != 0; }

  uint64_t size() const {
    const auto bytes = parseSize(text);
    if (!bytes) bench::reject("invalid size specified for '" + std::string(name) + "': " + text);
    return *bytes;
  }

  void ignoreOnCpu(const char* why) const {
    if (isTalking && flag()) std::fprintf(stderr, "Option %s needs %s. Ignoring\n", name, why);
  }
};

using Setter = void (*)(Options&, const Argument&);

struct Row {
  char letter;  // 0: long name only
  const char* name;
  const char* value;  // what --help calls the value; nullptr: takes none
  const char* help;
  Setter set;
};

int parseType(const Argument& argument) {
  if (std::string(argument.text) == "all") return kAll;
  const auto type = parseElementType(argument.text);
  if (!type) {
    argument.reject("int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 f8e4m3 f8e5m2 or all");
  }
  return *type;
}

int parseOp(const Argument& argument) {
  if (std::string(argument.text) == "all") return kAll;
  const auto op = parseOperator(argument.text);
  if (!op) argument.reject("sum prod min max avg mulsum or all");
  return *op;
}

void parseDevice(const Argument& argument) {
  const std::string device = argument.text;
  if (device == "cpu") return;
  if (device != "cuda") argument.reject("cpu or cuda");
  throw Failure(ExitCode::NotImplemented,
                "--device cuda: this version has no CUDA device yet; run on CPU ranks with --device cpu");
}

bool parseBind(const Argument& argument) {
  const std::string bind = argument.text;
  if (bind != "core" && bind != "none") argument.reject("core or none");
  return bind == "core";
}

BufferKind parseBuffers(const Argument& argument) {
  const std::string kind = argument.text;
  if (kind != "malloc" && kind != "nccl") argument.reject("malloc or nccl");
  return kind == "nccl" ? BufferKind::Registered : BufferKind::Ordinary;
}

void rejectDeviceKernels(const Argument& argument) {
  if (argument.integer(0) == 0) return;
  throw Failure(ExitCode::NotImplemented, "Option -D (device implementation) needs CUDA and -R 2");
}

// clang-format off
const Row kRows[] = {
    {0, "ranks", "N", "local processes; default: one per device, 1 when -t or -g is given",
     [](Options& o, const Argument& a) { o.processes = a.integer(1, 4096); }},
    {'t', "nthreads", "N", "threads per process, each a rank [1]",
     [](Options& o, const Argument& a) { o.threads = a.integer(1, 4096); }},
    {'g', "ngpus", "N", "devices per thread, each a rank [1]",
     [](Options& o, const Argument& a) { o.devicesPerThread = a.integer(1, 4096); }},
    {'b', "minbytes", "SIZE", "first size: 8, 1.5K, 32M, 2G [32M]",
     [](Options& o, const Argument& a) { o.minBytes = a.size(); }},
    {'e', "maxbytes", "SIZE", "last size [32M]", [](Options& o, const Argument& a) { o.maxBytes = a.size(); }},
    {'i', "stepbytes", "SIZE", "step between sizes [1M]",
     [](Options& o, const Argument& a) { o.stepBytes = a.size(); }},
    {'f', "stepfactor", "N", "factor between sizes, instead of -i [off]",
     [](Options& o, const Argument& a) { o.stepFactor = static_cast<uint64_t>(a.integer(0)); }},
    {'n', "iters", "N", "timed iterations [20]",
     [](Options& o, const Argument& a) { o.iterations = a.integer(1); }},
    {'m', "agg_iters", "N", "calls per group and iteration [1]",
     [](Options& o, const Argument& a) { o.aggregated = a.integer(1); }},
    {'w', "warmup_iters", "N", "iterations over all sizes before timing [1]",
     [](Options& o, const Argument& a) { o.warmups = a.integer(0); }},
    {'N', "run_cycles", "N", "repetitions of everything, 0: forever [1]",
     [](Options& o, const Argument& a) { o.cycles = a.integer(0); }},
    {'p', "parallel_init", "0/1", "threads join communicators concurrently [0]",
     [](Options& o, const Argument& a) { o.parallelInit = a.flag(); }},
    {'c', "check", "N", "checks per row, 0: none [1]",
     [](Options& o, const Argument& a) { o.checks = a.integer(0); }},
    {'o', "op", "OP", "sum prod min max avg mulsum all [sum]",
     [](Options& o, const Argument& a) { o.op = parseOp(a); }},
    {'d', "datatype", "TYPE", "int8 .. uint64 half float double bfloat16 f8e4m3 f8e5m2 all [float]",
     [](Options& o, const Argument& a) { o.type = parseType(a); }},
    {'r', "root", "RANK", "root rank, -1 or all: every rank [0]",
     [](Options& o, const Argument& a) { o.root = std::string(a.text) == "all" ? kAll : a.integer(-1); }},
    {'z', "blocking", "0..3", "barrier: 1 every call, 2 none, 3 every iteration [0]",
     [](Options& o, const Argument& a) { o.blocking = static_cast<Blocking>(a.integer(0, 3)); }},
    {'T', "timeout", "SECONDS", "give up a row after this long [off]",
     [](Options& o, const Argument& a) { o.timeoutSeconds = a.integer(0); }},
    {'C', "report_cputime", "0/1", "time column: until calls return [0]",
     [](Options& o, const Argument& a) { o.reportCpuTime = a.flag(); }},
    {'S', "report_timestamps", "0/1", "column with the time of day [0]",
     [](Options& o, const Argument& a) { o.timestamps = a.flag(); }},
    {'J', "output_file", "FILE", "JSON report; .json",
     [](Options& o, const Argument& a) { o.outputFile = a.text; }},
    {'a', "average", "0..3", "time over ranks: rank 0, average, min, max [1]",
     [](Options& o, const Argument& a) { o.averaging = static_cast<Averaging>(a.integer(0, 3)); }},
    {'M', "memory", "0/1", "report memory use [0]",
     [](Options& o, const Argument& a) { o.reportMemory = a.flag(); }},
    {'u', "unalign", "N", "elements that buffers are misaligned by [0]",
     [](Options& o, const Argument& a) { o.unalign = static_cast<uint64_t>(a.integer(0)); }},
    {'I', "per_iter_timing", "0/1", "columns with min max p99 variation of iterations [0]",
     [](Options& o, const Argument& a) { o.perIteration = a.flag(); }},
    {'K', "per_iter_skip", "N", "first iterations that -I leaves out [0]",
     [](Options& o, const Argument& a) { o.perIterationSkip = a.integer(0); }},
    {0, "csv", "FILE", "CSV report: a line for each row and direction",
     [](Options& o, const Argument& a) { o.csvFile = a.text; }},
    {0, "device", "KIND", "cpu or cuda [cpu]", [](Options&, const Argument& a) { parseDevice(a); }},
    {0, "bind", "WHERE", "core: each rank to a core of its own; none [none]",
     [](Options& o, const Argument& a) { o.bindToCores = parseBind(a); }},
    {0, "buffers", "KIND", "malloc or nccl (ncclMemAlloc) [malloc]",
     [](Options& o, const Argument& a) { o.buffers = parseBuffers(a); }},
    {0, "bits", nullptr, "compare results between ranks bit by bit even with -c 0",
     [](Options& o, const Argument&) { o.compareBits = true; }},
    {0, "explain", nullptr, "columns: algorithm protocol transport channels",
     [](Options& o, const Argument&) { o.explain = true; }},
    {'h', "help", nullptr, "this text", [](Options& o, const Argument&) { o.help = true; }},
    // Accepted for command lines written for GPUs.
    {'y', "stream_null", "0/1", nullptr, [](Options&, const Argument&) {}},
    {'G', "cudagraph", "N", nullptr, [](Options&, const Argument& a) { a.ignoreOnCpu("CUDA graphs"); }},
    {'R', "local_register", "0..2", nullptr,
     [](Options&, const Argument& a) { a.ignoreOnCpu("buffer registration"); }},
    {'x', "cta_policy", "0..2", nullptr, [](Options&, const Argument& a) { a.ignoreOnCpu("CUDA blocks"); }},
    {'D', "device_implementation", "N", nullptr, [](Options&, const Argument& a) { rejectDeviceKernels(a); }},
    {'V', "device_cta_count", "N", nullptr, [](Options&, const Argument&) {}},
};
// clang-format on

constexpr int kFirstLongOnly = 256;

std::string shortOptions() {
  std::string text;
  for (const Row& row : kRows) {
    if (row.letter != 0) text += std::string(1, row.letter) + (row.value != nullptr ? ":" : "");
  }
  return text;
}

// getopt returns the row's number, offset so that it can't be taken for '?' or a letter.
std::vector<option> longOptions() {
  std::vector<option> table;
  int index = 0;
  for (const Row& row : kRows) {
    table.push_back({row.name, row.value != nullptr ? required_argument : no_argument, nullptr,
                     kFirstLongOnly + index++});
  }
  table.push_back({nullptr, 0, nullptr, 0});
  return table;
}

const Row* rowOf(int found) {
  if (found >= kFirstLongOnly) return &kRows[found - kFirstLongOnly];
  for (const Row& row : kRows) {
    if (row.letter == found) return &row;
  }
  return nullptr;
}

void checkTogether(const Options& options) {
  if (options.minBytes > options.maxBytes) {
    reject("invalid sizes for 'minbytes' and 'maxbytes': " + std::to_string(options.minBytes) + " > " +
           std::to_string(options.maxBytes));
  }
  const bool isStepping = options.stepFactor > 1 || options.stepBytes > 0;
  if (!isStepping && options.minBytes < options.maxBytes) reject("invalid step: -i must be at least 1");
  const std::string& file = options.outputFile;
  if (!file.empty() && (file.size() < 5 || file.substr(file.size() - 5) != ".json")) {
    reject("invalid value \"" + file + "\" for 'output_file': must end with .json");
  }
}

}  // namespace

Options parseOptions(int count, char** arguments, bool isTalking) {
  Options options;
  bool isOneProcess = false;
  const std::string letters = shortOptions();
  const std::vector<option> names = longOptions();
  optind = 1;
  opterr = isTalking ? 1 : 0;
  for (int found; (found = getopt_long(count, arguments, letters.c_str(), names.data(), nullptr)) != -1;) {
    const Row* row = rowOf(found);
    if (row == nullptr) reject("invalid option; --help lists all");
    row->set(options, {row->name, optarg != nullptr ? optarg : "", isTalking});
    isOneProcess = isOneProcess || row->letter == 't' || row->letter == 'g';
  }
  if (optind < count) reject("invalid argument \"" + std::string(arguments[optind]) + "\"; --help lists all");
  checkTogether(options);
  if (options.processes == 0 && isOneProcess) options.processes = 1;
  return options;
}

std::string usage(const std::string& program) {
  std::string text = "usage: " + program +
                     " [options]\nRanks: --ranks processes x -t threads x -g devices, or started by mpirun, "
                     "srun, torchrun.\n";
  for (const Row& row : kRows) {
    if (row.help == nullptr) continue;
    std::string line = row.letter != 0 ? std::string("  -") + row.letter + ", --" : "      --";
    line += row.name + std::string(row.value != nullptr ? " " : "") + (row.value != nullptr ? row.value : "");
    line.resize(std::max<size_t>(line.size() + 1, 31), ' ');
    text += line + row.help + "\n";
  }
  return text +
         "Accepted, without effect on CPU ranks: -y -G -R -x -V. -D 1 and more needs CUDA.\n"
         "Exit codes: 0 well; 1 internal, a dead rank; 3 a failed call; 4 -T ran out; 5 not available "
         "(cuda,\n"
         "-D); 6 several hosts, contradictory launch; 7 wrong data, below 0.9 x NCCL_TESTS_MIN_BW; 255 bad\n"
         "arguments. TOPOCCL_BENCH_INJECT=RANK:ELEMENT:BIT flips a bit of a result, which must be found.\n";
}

}  // namespace topoccl::bench
