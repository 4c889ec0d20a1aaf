// One process of a bench: its threads, their communicators, and the report if rank 0 is here.
#pragma once

#include "common/collective.h"
#include "common/options.h"

namespace topoccl::bench {

struct TeamSeat {
  int process = 0;
  int processes = 1;
  int localProcess = 0;   // on this host
  void* board = nullptr;  // Board::bytesNeeded(processes * options.threads) bytes, shared with the others
  int argumentCount = 0;
  char** arguments = nullptr;
};

// Runs the whole bench as one of `seat.processes` processes. Returns the exit code; failures of this
// process's threads are printed on stderr and told to the others.
int runTeam(const Collective& collective, const Options& options, const TeamSeat& seat);

}  // namespace topoccl::bench
