// Who started this process: mpirun (Open MPI, MPICH), torchrun or srun tell by environment variables which
// rank it is. Reads only the environment it is given, and asks about a descriptor that it names.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace topoccl::bench {

// Value of a variable, nothing if it is not set. getenv in production, a table in tests.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> processEnvironment(const std::string& name);

struct Launch {
  std::string launcher;  // "Open MPI mpirun", ...
  int rank = 0;
  int ranks = 1;
  int localRank = 0;   // within the host
  std::string jobKey;  // equal for all ranks of one job, different for other jobs of the same user
};

// Nothing if no launcher's variables are set; empty ones count as unset. Where several launchers' are, the
// innermost counts. Throws Failure where half of them are set, where they contradict each other or say that
// the ranks sit on several hosts.
std::optional<Launch> detectLaunch(const Environment& environment);

}  // namespace topoccl::bench
