// What ranks and the root tell each other inside frames (frame.h). Decoders are pure functions that accept
// any bytes: they check every length before they allocate and return nothing for what is malformed.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace topoccl {

enum class Message : uint8_t {
  // rank -> root
  Join = 1,  // Join
  Gather,    // Contribution
  Abort,     // reason, as raw bytes
  Leave,     // empty
  // root -> rank
  Admitted,   // the rank's proof was right: its connection is no longer closed to make room; empty
  Welcome,    // Welcome
  Gathered,   // encodeBlobs
  Failure,    // Failure
  Farewell,   // answer to Leave; empty
  RootMayGo,  // no rank lives in the root's process any more: its end is no death; empty
};

// All contributions to one allGather together, and any single frame's payload.
inline constexpr size_t kMaxGatherBytes = 64 << 20;
inline constexpr size_t kMaxFrameBytes = kMaxGatherBytes + (8 << 20);
inline constexpr size_t kMaxTextBytes = 4096;

// Ranks are signed on the wire, so that a wrong one reaches the root and everybody is told.
struct Join {
  uint32_t version = 0;
  int32_t ranks = 0;
  int32_t rank = 0;
  uint32_t patienceMilliseconds = 0;  // how long this rank will wait for the others
  uint64_t process = 0;               // processToken()
  uint32_t processId = 0;
  std::string host;
};

struct Contribution {
  uint32_t patienceMilliseconds = 0;
  std::string blob;
};

constexpr int32_t kNoRank = -1, kSeveralRanks = -2;

struct Welcome {
  int32_t rootRank = kNoRank;  // that lives in the root's process, or one of the two above
  uint64_t process = 0;        // processToken() of that process
  uint32_t processId = 0;
  std::string host;
};

struct Failure {
  Code code = Code::RemoteError;
  int32_t rank = -1;  // whom the failure is about; -1 if nobody in particular
  std::string reason;
};

std::string encode(const Join& join);
std::string encode(const Contribution& contribution);
std::string encode(const Welcome& welcome);
std::string encode(const Failure& failure);
std::string encodeBlobs(const std::vector<std::string>& blobs);

std::optional<Join> decodeJoin(std::string_view bytes);
std::optional<Contribution> decodeContribution(std::string_view bytes);
std::optional<Welcome> decodeWelcome(std::string_view bytes);
std::optional<Failure> decodeFailure(std::string_view bytes);
std::optional<std::vector<std::string>> decodeBlobs(std::string_view bytes, size_t count);

// Foreign text made fit for messages: at most kMaxTextBytes, no control characters.
std::string printable(std::string_view text);

// A duration as milliseconds on the wire.
uint32_t toMilliseconds(std::chrono::steady_clock::duration duration);

}  // namespace topoccl
