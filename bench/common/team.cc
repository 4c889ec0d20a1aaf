#include "common/team.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "common/board.h"
#include "common/failure.h"
#include "common/host_memory.h"
#include "common/local_ranks.h"
#include "common/sweep.h"
#include "common/variables.h"

namespace topoccl::bench {
namespace {

std::vector<topocclDevice_t> localDevices() {
  int count = 0;
  check(topocclGetDevices(nullptr, 0, &count));
  std::vector<topocclDevice_t> devices(static_cast<size_t>(count));
  check(topocclGetDevices(devices.data(), count, &count));
  return devices;
}

class Team {
 public:
  Team(const Collective& collective, const Options& options, const TeamSeat& seat)
      : collective_(collective),
        options_(options),
        seat_(seat),
        devices_(localDevices()),
        comms_(static_cast<size_t>(options.threads * options.devicesPerThread)) {}

  int run() {
    std::vector<std::thread> threads;
    codes_.assign(static_cast<size_t>(options_.threads), 0);
    for (int i = 1; i < options_.threads; i++) threads.emplace_back([this, i] { guardedDriver(i); });
    guardedDriver(0);
    for (std::thread& thread : threads) thread.join();
    return exitCode();
  }

 private:
  int ranksPerDriver() const { return options_.devicesPerThread; }
  int drivers() const { return seat_.processes * options_.threads; }
  int ranks() const { return drivers() * ranksPerDriver(); }
  int firstRank() const { return seat_.process * options_.threads * ranksPerDriver(); }

  // Threads that stopped because another one failed end with InternalError: prefer the code that says why.
  int exitCode() const {
    int result = 0;
    for (const int code : codes_) {
      if (result == 0 || result == static_cast<int>(ExitCode::InternalError))
        result = code != 0 ? code : result;
    }
    return result;
  }

  void guardedDriver(int thread) {
    Board board(seat_.board, drivers(), seat_.process * options_.threads + thread);
    int& code = codes_[static_cast<size_t>(thread)];
    try {
      code = driver(thread, board);
    } catch (const Failure& failure) {
      code = static_cast<int>(failure.code());
      // Whoever sees the board's flag is not the one to explain.
      if (!board.failed()) std::fprintf(stderr, "%s\n", failure.what());
      board.fail();
      endSoon(code);
    } catch (const std::exception& error) {
      code = static_cast<int>(ExitCode::InternalError);
      std::fprintf(stderr, "# error: %s\n", error.what());
      board.fail();
      endSoon(code);
    }
  }

  // The board can't end a thread that waits inside the library for the one that failed.
  static void endSoon(int code) {
    std::thread([code] {
      std::this_thread::sleep_for(std::chrono::seconds(3));
      _exit(code);
    }).detach();
  }

  int driver(int thread, Board& board) {
    if (options_.bindToCores) bindToCore(thread);
    std::optional<JsonReport> json;
    std::optional<CsvReport> csv;
    const TextReport text(stdout, options_);
    int version = 0;
    check(ncclGetVersion(&version));
    const bool isReporter = board.driver() == 0;
    if (isReporter) {
      json.emplace(options_, seat_.argumentCount, seat_.arguments, version);
      csv.emplace(options_, collective_.traits().program, ranks());
      text.opening(collective_.traits().program, version);
    }
    const std::vector<DeviceLine> lines = gatherDevices(thread, board);
    const uint64_t maxBytes = affordableBytes(board);
    if (isReporter) {
      text.devices(lines);
      json->config(options_, lines);
      if (maxBytes < options_.maxBytes) text.reducedMaxBytes(maxBytes);
    }
    join(thread, board);
    if (isReporter) text.tableHead();
    const Reports reports = isReporter ? Reports{&text, &*json, &*csv} : Reports{};
    const Summary summary = sweep(thread, board, maxBytes, reports);
    leave(thread, board);
    if (isReporter) conclude(reports, summary);
    const bool isGood = summary.failedChecks == 0 && summary.isFastEnough();
    return static_cast<int>(isGood ? ExitCode::Success : ExitCode::WrongData);
  }

  void bindToCore(int thread) const {
    const auto index = static_cast<size_t>(seat_.localProcess * options_.threads + thread);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<size_t>(devices_[index % devices_.size()].systemId), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) std::perror("# could not bind to a core");
  }

  DeviceLine deviceLine(int thread, int local) const {
    const int perProcess = options_.threads * ranksPerDriver();
    const int wanted = static_cast<int>(numberVariable("NCCL_TESTS_DEVICE", -1, -1, 65535));
    const int first = wanted < 0 ? seat_.localProcess * perProcess : wanted;
    const int inProcess = thread * ranksPerDriver() + local;
    DeviceLine line;
    line.rank = firstRank() + inProcess;
    line.pid = getpid();
    std::snprintf(line.host, sizeof line.host, "%s", hostName().c_str());
    const auto index = static_cast<size_t>(first + inProcess) % devices_.size();
    line.device = devices_[index].index;
    std::snprintf(line.name, sizeof line.name, "%s", devices_[index].name);
    return line;
  }

  std::vector<DeviceLine> gatherDevices(int thread, Board& board) const {
    std::vector<DeviceLine> all;
    for (int i = 0; i < ranksPerDriver(); i++) {
      const auto lines = board.gather(deviceLine(thread, i));
      all.insert(all.end(), lines.begin(), lines.end());
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
    return all;
  }

  // The largest row whose buffers, of all ranks together, leave a gigabyte of this host's memory free.
  uint64_t affordableBytes(Board& board) const {
    constexpr uint64_t kReserve = uint64_t{1} << 30;
    const uint64_t available = availableMemory();
    const uint64_t perRank =
        (available > kReserve ? available - kReserve : 0) / static_cast<uint64_t>(ranks());
    uint64_t bytes = std::min(options_.maxBytes, perRank / 2);
    for (const uint64_t other : board.gather(bytes)) bytes = std::min(bytes, other);
    return std::max(bytes, options_.minBytes);
  }

  // Makes the communicators: one thread for the whole process, or with -p every thread its own.
  void join(int thread, Board& board) {
    ncclUniqueId id{};
    if (board.driver() == 0) check(ncclGetUniqueId(&id));
    id = board.gather(id).front();
    if (options_.parallelInit) {
      joinRanks(id, thread * ranksPerDriver(), ranksPerDriver());
    } else if (thread == 0 && seat_.processes == 1 && ranks() > 1) {
      check(ncclCommInitAll(comms_.data(), ranks(), nullptr));
    } else if (thread == 0) {
      joinRanks(id, 0, options_.threads * ranksPerDriver());
    }
    board.barrier();
  }

  void joinRanks(const ncclUniqueId& id, int first, int count) {
    if (count > 1) check(ncclGroupStart());
    for (int i = first; i < first + count; i++) {
      check(ncclCommInitRank(&comms_[static_cast<size_t>(i)], ranks(), id, firstRank() + i));
    }
    if (count > 1) check(ncclGroupEnd());
  }

  Summary sweep(int thread, Board& board, uint64_t maxBytes, Reports reports) {
    const auto first = comms_.begin() + thread * ranksPerDriver();
    const LocalRanks local(collective_, options_, {first, first + ranksPerDriver()},
                           firstRank() + thread * ranksPerDriver(), ranks(), maxBytes);
    return Sweep(options_, maxBytes, local, board, reports).run();
  }

  void leave(int thread, Board& board) {
    board.barrier();
    for (int i = 0; i < ranksPerDriver(); i++) {
      check(ncclCommDestroy(comms_[static_cast<size_t>(thread * ranksPerDriver() + i)]));
    }
  }

  void conclude(const Reports& reports, const Summary& summary) const {
    reports.text->summary(collective_.traits().program, summary);
    reports.json->summary(summary);
    if (options_.reportMemory) reports.text->memory(peakMemory());
    // The last error may be what probing for `-d all` was told: that is no error of the run.
    const bool isProbed = options_.type == kAll || options_.op == kAll;
    const std::string error = isProbed ? "" : ncclGetLastError(nullptr);
    reports.text->errors(error);
    reports.json->finish({error});
    reports.csv->finish();
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      throw Failure(ExitCode::InternalError, "the report could not be written to standard output");
  }

  const Collective& collective_;
  const Options& options_;
  const TeamSeat& seat_;
  std::vector<topocclDevice_t> devices_;
  std::vector<ncclComm_t> comms_;
  std::vector<int> codes_;
};

}  // namespace

int runTeam(const Collective& collective, const Options& options, const TeamSeat& seat) {
  return Team(collective, options, seat).run();
}

}  // namespace topoccl::bench
