// What every rank tells the others at init.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/settings.h"
#include "communicator/communicator.h"

namespace topoccl {

// As it is sent, in the host's byte order.
struct RankFacts {
  uint64_t host;
  uint64_t process;
  uint64_t tableHash;
  uint64_t nonce;  // the leader's names its node's memory within a process
  uint32_t coreWords;
  uint32_t unused;
};

// Blob: facts, then `coreWords` words of allowed cores, then the settings that must agree, as text.
struct RankIntroduction {
  RankFacts facts;
  std::vector<uint64_t> cores;
  std::string settings;
};

std::string encode(const RankIntroduction& rank);

// Takes any bytes. Throws RemoteError naming rank `from`, who sent them, where they are no introduction.
RankIntroduction decodeIntroduction(const std::string& blob, int from);

// This rank's own. `tableHash` is the hash of its range table.
RankIntroduction introduce(const Settings& settings, const CommConfig& config, uint64_t tableHash);

}  // namespace topoccl
