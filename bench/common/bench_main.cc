#include "common/bench_main.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "common/board.h"
#include "common/board_file.h"
#include "common/failure.h"
#include "common/launch.h"
#include "common/local_processes.h"
#include "common/memory_map.h"
#include "common/options.h"
#include "common/team.h"
#include "common/variables.h"
#include "topoccl.h"

namespace topoccl::bench {
namespace {

// How long ranks may take to come, unless TOPOCCL_INIT_TIMEOUT says so, in its range.
constexpr double kMeetingSeconds = 60, kShortestMeeting = 0.001, kLongestMeeting = 604800;
constexpr int64_t kMaxRanks = 1 << 16;

// What is opened later must not become a closed standard output.
void takeStandardDescriptors() {
  int descriptor = 0;
  while (descriptor >= 0 && descriptor <= STDERR_FILENO) descriptor = ::open("/dev/null", O_RDWR);
  if (descriptor > STDERR_FILENO) ::close(descriptor);
}

int deviceCount() {
  int count = 0;
  check(topocclGetDevices(nullptr, 0, &count));
  return count;
}

int runChild(const Collective& collective, const Options& options, const ChildSeat& seat, TeamSeat team) {
  const MemoryMap map =
      MemoryMap::ofFile(seat.boardDescriptor, Board::bytesNeeded(seat.ranks * options.threads));
  team.process = team.localProcess = seat.rank;
  team.processes = seat.ranks;
  team.board = map.data();
  return runTeam(collective, options, team);
}

// The library counts the empty variable as unset.
double meetingSeconds() {
  const bool isSet = processEnvironment("TOPOCCL_INIT_TIMEOUT").value_or("") != "";
  if (!isSet) return kMeetingSeconds;
  return numberVariable("TOPOCCL_INIT_TIMEOUT", kMeetingSeconds, kShortestMeeting, kLongestMeeting);
}

int runLaunched(const Collective& collective, const Options& options, const Launch& launch, TeamSeat team) {
  BoardFileRequest request{boardDirectory(), launch.jobKey, launch.rank, launch.ranks,
                           Board::bytesNeeded(launch.ranks * options.threads)};
  request.patience = std::chrono::milliseconds(static_cast<int64_t>(1000 * meetingSeconds()));
  const BoardFile file(request);
  team.process = launch.rank;
  team.localProcess = launch.localRank;
  team.processes = launch.ranks;
  team.board = file.board();
  return runTeam(collective, options, team);
}

int runLocal(const Collective& collective, const Options& options, int processes, TeamSeat team) {
  const int drivers = processes * options.threads;
  if (processes > 1) return superviseLocalRanks(team.arguments, processes, drivers);
  const MemoryMap map = MemoryMap::anonymous(Board::bytesNeeded(drivers));
  team.board = map.data();
  return runTeam(collective, options, team);
}

// How many there are is said by the launcher, else by --ranks, else by the devices.
int processesOf(const std::optional<Launch>& launch, const Options& options) {
  if (!launch) return options.processes > 0 ? options.processes : deviceCount();
  if (launch->ranks == 1) return std::max(1, options.processes);
  if (options.processes <= 1) return launch->ranks;
  throw Failure(ExitCode::BadArguments, launch->launcher + " made this rank " + std::to_string(launch->rank) +
                                            " of " + std::to_string(launch->ranks) +
                                            ", so --ranks can't start more; use one of the two");
}

void checkRanks(int processes, const Options& options) {
  const int64_t ranks = int64_t{processes} * options.threads * options.devicesPerThread;
  if (ranks <= kMaxRanks) return;
  throw Failure(ExitCode::BadArguments,
                std::to_string(processes) + " processes x " + std::to_string(options.threads) +
                    " threads x " + std::to_string(options.devicesPerThread) +
                    " devices are too many ranks: at most " + std::to_string(kMaxRanks));
}

int run(int argumentCount, char** arguments, const Collective& collective) {
  const std::optional<ChildSeat> seat = takeChildSeat();
  std::optional<Launch> launch;
  if (!seat) launch = detectLaunch(processEnvironment);
  const bool isFirst = !seat && (!launch || launch->rank == 0);
  const Options options = parseOptions(argumentCount, arguments, isFirst);
  if (options.help) {
    if (isFirst) std::fputs(usage(collective.traits().program).c_str(), stdout);
    return 0;
  }
  TeamSeat team;
  team.argumentCount = argumentCount;
  team.arguments = arguments;
  if (seat) return runChild(collective, options, *seat, team);
  const int processes = processesOf(launch, options);
  checkRanks(processes, options);
  if (launch && launch->ranks > 1) return runLaunched(collective, options, *launch, team);
  return runLocal(collective, options, processes, team);
}

}  // namespace

int benchMain(int argumentCount, char** arguments, const Collective& collective) {
  takeStandardDescriptors();
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  try {
    return run(argumentCount, arguments, collective);
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return static_cast<int>(failure.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "# error: %s\n", error.what());
    return static_cast<int>(ExitCode::InternalError);
  }
}

}  // namespace topoccl::bench
