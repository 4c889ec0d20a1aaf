#include "bootstrap/remote_bootstrap.h"

#include <algorithm>
#include <utility>

#include "base/host_identity.h"
#include "bootstrap/rank_list.h"

namespace topoccl {
namespace {

// The root knows who is late, so it speaks first; this long after our own deadline it is taken for dead.
constexpr std::chrono::seconds kGrace{2};
constexpr std::chrono::seconds kFarewell{1};

}  // namespace

RemoteBootstrap::RemoteBootstrap(ControlConnection connection, const Bytes32& key, int ranks, int rank,
                                 const Welcome& welcome, std::chrono::milliseconds timeout,
                                 const std::atomic<bool>* abort)
    : connection_(std::move(connection)),
      key_(key),
      ranks_(ranks),
      rank_(rank),
      root_(welcome),
      timeout_(timeout),
      abort_(abort),
      rootMayGo_(welcome.rootRank == kNoRank) {}

std::vector<std::string> RemoteBootstrap::allGather(const std::string& mine) {
  const std::string what = concat("rank ", rank_, " waiting for the other ranks");
  if (mine.size() > kMaxGatherBytes)
    throw Error(Code::InvalidUsage, concat(what, ": ", mine.size(), " bytes exceed ", kMaxGatherBytes));
  if (failure_) throwFailure(what);
  std::string gathered;
  try {
    gathered = exchange(mine);
  } catch (const AbortedError& error) {
    // An answer may still come: this connection can't carry another round.
    note({error.code(), rank_, error.what()});
    throw;
  }
  std::optional<std::vector<std::string>> blobs = decodeBlobs(gathered, static_cast<size_t>(ranks_));
  if (blobs) return std::move(*blobs);
  note({Code::InternalError, -1, "the root sent a malformed message"});
  throwFailure(what);
}

std::string RemoteBootstrap::exchange(const std::string& mine) {
  const std::string what = concat("rank ", rank_, " waiting for the other ranks");
  const Wait wait{Deadline::in(timeout_), abort_};
  try {
    connection_.send(Message::Gather, encode(Contribution{toMilliseconds(timeout_), mine}), wait, what);
  } catch (const AbortedError&) {
    throw;
  } catch (const Error&) {
    // The root may have said why before it closed: the reading below finds out.
  }
  return awaitGathered(what);
}

std::string RemoteBootstrap::awaitGathered(const std::string& what) {
  const Wait wait{Deadline::in(timeout_ + kGrace), abort_};
  try {
    for (;;) {
      Frame frame = connection_.receive(wait, what);
      if (frame.kind == static_cast<uint8_t>(Message::Gathered)) return std::move(frame.payload);
      onFrame(frame);
      if (failure_) break;
    }
  } catch (const AbortedError&) {
    throw;
  } catch (const Error& error) {
    rootMayGo_ = false;  // this call can't do without it
    noteRootGone(error.what());
  }
  throwFailure(what);
}

void RemoteBootstrap::onFrame(const Frame& frame) {
  if (frame.kind == static_cast<uint8_t>(Message::RootMayGo)) rootMayGo_ = true;
  if (frame.kind != static_cast<uint8_t>(Message::Failure)) return;
  if (const std::optional<Failure> failure = decodeFailure(frame.payload)) note(*failure);
}

std::optional<PeerFailure> RemoteBootstrap::failure() {
  if (!failure_ && !left_ && !rootGone_) {
    try {
      if (const std::optional<Frame> frame = connection_.poll("looking for failures")) onFrame(*frame);
    } catch (const Error& error) {
      noteRootGone(error.what());
    }
  }
  if (!failure_) return std::nullopt;
  return PeerFailure{failure_->rank, failure_->reason};
}

void RemoteBootstrap::reportAbort(const std::string& why) noexcept {
  if (left_ || std::exchange(reported_, true)) return;
  std::string text;
  try {
    text = why.substr(0, kMaxTextBytes);
  } catch (const std::bad_alloc&) {  // then without
  }
  sendShortly(Message::Abort, text);
  if (root_.process == processToken() && !failure_ && !rootGone_) awaitFromRoot(Message::Failure);
}

void RemoteBootstrap::leave() noexcept {
  if (left_) return;
  left_ = true;
  sendShortly(Message::Leave, "");
  if (root_.process == processToken()) awaitFromRoot(Message::Farewell);
  connection_.close();
}

// The root lives in this process, which may end at once: the others have been told before.
void RemoteBootstrap::awaitFromRoot(Message kind) noexcept {
  try {
    const Wait wait{Deadline::in(kFarewell), nullptr};
    while (connection_.receive(wait, "leaving").kind != static_cast<uint8_t>(kind)) {
    }
  } catch (const std::exception&) {
    // Gone or stuck: nothing to wait for.
  }
}

void RemoteBootstrap::sendShortly(Message kind, const std::string& payload) noexcept {
  try {
    connection_.send(kind, payload, Wait{Deadline::in(kFarewell), nullptr}, "telling the root");
  } catch (const std::exception&) {
    // A root that can't be told is gone or stuck; the others learn of that without us.
  }
}

Bytes32 RemoteBootstrap::deriveKey(const std::string& purpose) const {
  return mac(key_, {"derived", purpose});
}

void RemoteBootstrap::note(const Failure& failure) {
  if (!failure_) failure_ = failure;
}

void RemoteBootstrap::noteRootGone(const std::string& why) {
  rootGone_ = true;
  if (rootMayGo_) return;
  const std::string whose = root_.rootRank >= 0 ? concat(", where rank ", root_.rootRank, " lives,")
                            : root_.rootRank == kSeveralRanks ? ", where several ranks live,"
                                                              : "";
  note({Code::RemoteError, std::max(root_.rootRank, kNoRank),
        concat("the root (host ", root_.host, ", process ", root_.processId, ")", whose, " is gone: ", why)});
}

void RemoteBootstrap::throwFailure(const std::string& what) const {
  throw Error(failure_->code, concat(what, ": ", failure_->reason));
}

}  // namespace topoccl
