#include "communicator/rank_introduction.h"

#include <algorithm>
#include <cstring>

#include "base/crypto.h"
#include "base/error.h"
#include "base/host_identity.h"
#include "device/host.h"

namespace topoccl {

std::string encode(const RankIntroduction& rank) {
  std::string blob(reinterpret_cast<const char*>(&rank.facts), sizeof(rank.facts));
  blob.append(reinterpret_cast<const char*>(rank.cores.data()), rank.cores.size() * sizeof(uint64_t));
  return blob + rank.settings;
}

RankIntroduction decodeIntroduction(const std::string& blob, int from) {
  RankIntroduction rank;
  if (blob.size() >= sizeof(RankFacts)) std::memcpy(&rank.facts, blob.data(), sizeof(RankFacts));
  const size_t rest = blob.size() - std::min(blob.size(), sizeof(RankFacts));
  if (blob.size() < sizeof(RankFacts) || rank.facts.coreWords > rest / sizeof(uint64_t))
    throw Error(Code::RemoteError,
                concat("rank ", from, " introduced itself with ", blob.size(), " odd bytes"));
  rank.cores.resize(rank.facts.coreWords);
  const size_t coreBytes = rank.cores.size() * sizeof(uint64_t);
  if (coreBytes != 0) std::memcpy(rank.cores.data(), blob.data() + sizeof(RankFacts), coreBytes);
  rank.settings = blob.substr(sizeof(RankFacts) + coreBytes);
  return rank;
}

RankIntroduction introduce(const Settings& settings, const CommConfig& config, uint64_t tableHash) {
  RankIntroduction me;
  me.cores = allowedCores();
  me.facts = {
      hostIdentity(settings.hostId), processToken(), tableHash, 0, static_cast<uint32_t>(me.cores.size()), 0};
  randomBytes(&me.facts.nonce, sizeof(me.facts.nonce));
  me.settings =
      agreedText(settings) + concat("minCTAs=", config.minChannels, "\nmaxCTAs=", config.maxChannels, '\n');
  return me;
}

}  // namespace topoccl
