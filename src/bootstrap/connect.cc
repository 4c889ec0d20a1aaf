// getUniqueId and connectBootstrap: how a rank finds the root and joins.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <vector>

#include "base/host_identity.h"
#include "base/interfaces.h"
#include "base/logging.h"
#include "base/socket.h"
#include "base/version.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/rank_list.h"
#include "bootstrap/remote_bootstrap.h"
#include "bootstrap/root.h"

namespace topoccl {
namespace {

// A root answers at once; whoever does not is busy or somebody else: try again.
constexpr std::chrono::seconds kAttempt{10};
constexpr std::chrono::milliseconds kFirstPause{1};
constexpr std::chrono::milliseconds kLongestPause{100};
constexpr std::chrono::seconds kGrace{2};
constexpr std::chrono::seconds kRefusals{4};

struct Attempt {
  std::optional<ControlConnection> connection;
  std::string problem;
  bool refused = false;  // nobody listens there
};

Attempt attempt(const Rendezvous& rendezvous, const Bytes32& key, int rank, Wait wait) {
  const std::string what = concat("rank ", rank, " joining at ", rendezvous.address.text());
  wait.deadline = std::min(wait.deadline, Deadline::in(kAttempt));
  try {
    int error = 0;
    Descriptor socket = tryConnect(rendezvous.address, wait, error);
    if (!socket) return {std::nullopt, std::generic_category().message(error), error == ECONNREFUSED};
    const ConnectionKeys keys =
        authenticate(socket.get(), key, Purpose::Control, static_cast<uint32_t>(rank), kRootRank, wait, what);
    ControlConnection connection(std::move(socket), keys);
    if (connection.receive(wait, what).kind != static_cast<uint8_t>(Message::Admitted))
      throw Error(Code::RemoteError, what + ": the root sent an unexpected message");
    return {std::move(connection), "", false};
  } catch (const Error& error) {
    if (error.code() != Code::RemoteError) throw;
    return {std::nullopt, error.what(), false};
  }
}

// A root of this host that was there before its id was: who is refused there comes too late.
bool listensFromTheStart(const Rendezvous& rendezvous) {
  if (rendezvous.fromCommId) return false;
  const std::vector<NetworkInterface> all = networkInterfaces();
  return std::any_of(all.begin(), all.end(), [&](const NetworkInterface& own) {
    return own.address == rendezvous.address.withPort(0);
  });
}

ControlConnection reachRoot(const Rendezvous& rendezvous, const Bytes32& key, int rank, const Wait& wait,
                            std::chrono::milliseconds timeout) {
  std::chrono::milliseconds pause = kFirstPause;
  std::string problem;
  std::optional<bool> fromTheStart;       // asked when it first refuses
  Deadline believed = Deadline::never();  // in a root that refuses
  for (;;) {
    Attempt result = attempt(rendezvous, key, rank, wait);
    if (result.connection) return std::move(*result.connection);
    if (result.refused && !fromTheStart) fromTheStart = listensFromTheStart(rendezvous);
    if (!result.refused)
      believed = Deadline::never();
    else if (believed == Deadline::never() && *fromTheStart)
      believed = Deadline::in(kRefusals);
    if (believed.passed())
      throw Error(
          Code::RemoteError,
          concat("rank ", rank, " joining at ", rendezvous.address.text(), ": nobody has listened there for ",
                 kRefusals.count(), " s: the process that made the unique id is gone, and the root with it"));
    // That time ran out says less than what went wrong before.
    if (problem.empty() || !wait.deadline.passed()) problem = result.problem;
    const std::string what =
        concat("rank ", rank, " could not reach the root at ", rendezvous.address.text());
    if (wait.deadline.passed())
      throw TimeoutError(concat(
          what, " within ", initTimeoutText(timeout.count()), " (last: ", problem,
          "); is the process alive that made the unique id, and the id from this run? Has that process "
          "descriptors left (ulimit -n)?"));
    sleepFor(pause, wait, what);
    pause = std::min(2 * pause, kLongestPause);
  }
}

Frame receiveFromRoot(ControlConnection& connection, const Wait& wait, const std::string& what) {
  try {
    return connection.receive(wait, what);
  } catch (const TimeoutError&) {
    throw;
  } catch (const Error& error) {
    if (error.code() != Code::RemoteError) throw;
    throw Error(Code::RemoteError,
                concat(error.what(), ": the root is gone, and the process that made the unique id with it?"));
  }
}

Welcome awaitWelcome(ControlConnection& connection, int rank, const Wait& wait) {
  const std::string what = concat("rank ", rank, " waiting for all ranks to join");
  for (;;) {
    const Frame frame = receiveFromRoot(connection, wait, what);
    if (frame.kind == static_cast<uint8_t>(Message::Welcome))
      if (const std::optional<Welcome> welcome = decodeWelcome(frame.payload)) return *welcome;
    if (frame.kind == static_cast<uint8_t>(Message::Failure))
      if (const std::optional<Failure> failure = decodeFailure(frame.payload))
        throw Error(failure->code, concat("rank ", rank, " can't start: ", failure->reason));
  }
}

}  // namespace

UniqueId getUniqueId(const Settings& settings) {
  return settings.commId.empty() ? startRoot(settings) : uniqueIdFromCommId(settings);
}

std::unique_ptr<Bootstrap> connectBootstrap(const UniqueId& id, int ranks, int rank, const Settings& settings,
                                            const std::atomic<bool>* abort,
                                            const std::function<void()>& check) {
  const Rendezvous rendezvous = decodeUniqueId(id);
  const Bytes32 key = sessionKey(rendezvous.secret);
  const Wait wait{Deadline::in(settings.initTimeout), abort, check ? &check : nullptr};
  if (rendezvous.fromCommId && rank == 0) startRootAt(rendezvous, settings, wait);
  ControlConnection connection = reachRoot(rendezvous, key, rank, wait, settings.initTimeout);

  const Join join{kLibraryVersion,
                  ranks,
                  rank,
                  toMilliseconds(wait.deadline.left(settings.initTimeout)),
                  processToken(),
                  static_cast<uint32_t>(::getpid()),
                  hostName()};
  connection.send(Message::Join, encode(join), wait, concat("rank ", rank, " joining"));
  // The root knows who is missing and says so at our deadline: wait a little longer to hear it.
  const Wait longer{Deadline::in(wait.deadline.left(settings.initTimeout) + kGrace), abort, wait.check};
  const Welcome welcome = awaitWelcome(connection, rank, longer);
  log(Level::Info, Subsystem::Bootstrap, "rank ", rank, " of ", ranks, " joined at ",
      rendezvous.address.text());
  return std::make_unique<RemoteBootstrap>(std::move(connection), key, ranks, rank, welcome,
                                           settings.initTimeout, abort);
}

}  // namespace topoccl
