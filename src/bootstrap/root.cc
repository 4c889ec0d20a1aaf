#include "bootstrap/root.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "base/host_identity.h"
#include "base/interfaces.h"
#include "base/limits.h"
#include "base/logging.h"
#include "bootstrap/frame.h"
#include "bootstrap/handshake.h"
#include "bootstrap/service_thread.h"
#include "bootstrap/session.h"
#include "bootstrap/strangers.h"

namespace topoccl {
namespace {

constexpr std::chrono::milliseconds kAcceptPause{50};
constexpr size_t kReadBytes = 256 << 10;
constexpr uint64_t kListener = 0;

// One connection's bytes, in and out.
struct Peer {
  Descriptor socket;
  ServerHandshake handshake;
  std::optional<FrameOpener> opener;
  std::optional<FrameSealer> sealer;
  std::string input;
  struct Outgoing {
    std::string head;
    std::optional<Payload> payload;
  };
  std::deque<Outgoing> output;
  size_t sent = 0;  // of the first
  bool writing = false;
  Deadline trial = Deadline::in(kStrangerTime);

  Peer(Descriptor socket_, const Bytes32& key)
      : socket(std::move(socket_)), handshake(key, Purpose::Control, kRootRank) {}

  bool silent() const { return handshake.state() == ServerHandshake::State::Hello && input.empty(); }

  // False when the connection is broken.
  bool flush();
};

bool Peer::flush() {
  try {
    while (!output.empty()) {
      const Outgoing& first = output.front();
      const bool inHead = sent < first.head.size();
      std::string_view rest = inHead
                                  ? std::string_view(first.head).substr(sent)
                                  : std::string_view(first.payload->bytes()).substr(sent - first.head.size());
      if (!rest.empty()) {
        const std::optional<size_t> count = sendNow(socket.get(), rest, "sending to a rank");
        if (!count) return true;
        sent += *count;
      }
      if (sent < first.head.size() + (first.payload ? first.payload->bytes().size() : 0)) continue;
      output.pop_front();
      sent = 0;
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

class Root {
 public:
  Root(Descriptor listener, const Rendezvous& rendezvous, std::chrono::milliseconds linger);
  void run();

 private:
  void watch(int operation, int descriptor, uint64_t id, uint32_t events);
  int timeoutMilliseconds() const;
  void acceptSome();
  bool makeRoom();
  void noteObstacle(int error);
  void pauseAccepting();
  void resumeAccepting();
  void onEvent(int id, uint32_t events);
  bool receive(Peer& peer);
  void parse(int id);
  void send(int id, Message kind, const Payload& payload);
  void flush(int id, Peer& peer);
  void drop(int id, const std::string& why);
  void reap();
  void housekeeping();

  Descriptor listener_;
  Descriptor epoll_;
  Bytes32 key_;
  bool fromCommId_;
  Session session_;
  std::map<int, Peer> peers_;                      // ids grow, so the first is the oldest
  std::set<int> strangers_;                        // peers that have not joined
  std::vector<std::pair<int, std::string>> dead_;  // dropped in the next reap()
  const size_t strangersLimit_ = strangersLimit();
  int nextId_ = 1;
  Deadline acceptAgain_ = Deadline::never();
  bool obstructed_ = false;
  std::string buffer_ = std::string(kReadBytes, '\0');
};

Root::Root(Descriptor listener, const Rendezvous& rendezvous, std::chrono::milliseconds linger)
    : listener_(std::move(listener)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      key_(sessionKey(rendezvous.secret)),
      fromCommId_(rendezvous.fromCommId),
      session_({-1, processToken(), static_cast<uint32_t>(::getpid()), hostName()}, linger,
               [this](int id, Message kind, const Payload& payload) { send(id, kind, payload); }) {
  if (!epoll_) throwSystemError("making an epoll instance", errno);
  watch(EPOLL_CTL_ADD, listener_.get(), kListener, EPOLLIN);
}

void Root::watch(int operation, int descriptor, uint64_t id, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  if (::epoll_ctl(epoll_.get(), operation, descriptor, &event) != 0) throwSystemError("epoll_ctl", errno);
}

void Root::run() {
  std::array<epoll_event, 64> events;
  while (!session_.finished()) {
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeoutMilliseconds());
    if (count < 0 && errno != EINTR) throwSystemError("epoll_wait", errno);
    bool knocked = false;
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      if (event.data.u64 == kListener)
        knocked = true;
      else
        onEvent(static_cast<int>(event.data.u64), event.events);
    }
    if (knocked) acceptSome();  // last: who is here already may have proved itself
    housekeeping();
  }
}

int Root::timeoutMilliseconds() const {
  Deadline next = std::min(session_.nextTick(), acceptAgain_);
  if (!strangers_.empty()) next = std::min(next, peers_.at(*strangers_.begin()).trial);
  if (next == Deadline::never()) return -1;
  const auto left = next.left(std::chrono::hours(1));
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

void Root::housekeeping() {
  while (!strangers_.empty() && peers_.at(*strangers_.begin()).trial.passed()) {
    log(Level::Info, Subsystem::Bootstrap, "a connection to the root proved nothing in time: closed");
    drop(*strangers_.begin(), "timed out");
  }
  reap();
  if (session_.nextTick().passed()) session_.onTick(Deadline::Clock::now());
  if (acceptAgain_.passed()) resumeAccepting();
  if (fromCommId_ && session_.complete()) listener_.reset();
  reap();
}

void Root::acceptSome() {
  for (size_t i = 0; i < kMaxAccepts; ++i) {
    int error = 0;
    Descriptor socket = tryAccept(listener_.get(), error);
    if (!socket) {
      if (error == EAGAIN || error == EWOULDBLOCK) return;
      if (error == ECONNABORTED || error == EPROTO || error == EINTR) continue;  // it died while it waited
      noteObstacle(error);
      if (!makeRoom()) return pauseAccepting();
      continue;
    }
    while (strangers_.size() >= strangersLimit_ && makeRoom()) {
    }
    const int id = nextId_++;
    try {
      watch(EPOLL_CTL_ADD, socket.get(), static_cast<uint64_t>(id), EPOLLIN);
    } catch (const Error& problem) {  // the system's limit of watches; it may come again
      log(Level::Warn, Subsystem::Bootstrap, "a connection to the root was closed: ", problem.what());
      continue;
    }
    peers_.try_emplace(id, std::move(socket), key_);
    strangers_.insert(id);
  }
}

// Closes the oldest stranger that has said nothing, or else the oldest that has proved nothing. Who holds the
// secret speaks at once, so that a flood of others rarely keeps it out; then it tries again.
bool Root::makeRoom() {
  const auto find = [this](auto accept) {
    return std::find_if(strangers_.begin(), strangers_.end(), [&](int id) { return accept(peers_.at(id)); });
  };
  auto found = find([](const Peer& peer) { return peer.silent(); });
  if (found == strangers_.end()) found = find([](const Peer& peer) { return !peer.opener; });
  if (found == strangers_.end()) return false;
  drop(*found, "too many strangers");
  return true;
}

// It may pass, or be why ranks will be missing.
void Root::noteObstacle(int error) {
  if (std::exchange(obstructed_, true)) return;
  const std::string why = concat("the root (process ", ::getpid(), ") could not accept all connections: ",
                                 std::generic_category().message(error), limitBehind(error));
  session_.noteObstacle("; " + why);
  log(Level::Warn, Subsystem::Bootstrap, why);
}

// No descriptors or memory, and no stranger to take them from: try later rather than at once for ever.
void Root::pauseAccepting() {
  watch(EPOLL_CTL_DEL, listener_.get(), kListener, 0);
  acceptAgain_ = Deadline::in(kAcceptPause);
}

void Root::resumeAccepting() {
  acceptAgain_ = Deadline::never();
  if (listener_) watch(EPOLL_CTL_ADD, listener_.get(), kListener, EPOLLIN);
}

void Root::onEvent(int id, uint32_t events) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;  // dropped by an earlier event of this batch
  Peer& peer = found->second;
  if (events & EPOLLOUT) flush(id, peer);
  if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR))) return;
  std::string why = "the connection was closed";
  bool open = false;
  try {
    open = receive(peer);
  } catch (const Error& error) {
    why = error.what();
  }
  parse(id);
  if (!open) drop(id, why);
}

bool Root::receive(Peer& peer) {
  const std::optional<size_t> count =
      receiveNow(peer.socket.get(), buffer_.data(), buffer_.size(), "receiving from a rank");
  if (count) peer.input.append(buffer_, 0, *count);
  return !count || *count > 0;
}

void Root::parse(int id) {
  Peer& peer = peers_.at(id);
  if (!peer.opener) {
    std::string reply = peer.handshake.advance(peer.input);
    if (!reply.empty()) {
      peer.output.push_back({std::move(reply), std::nullopt});
      flush(id, peer);
    }
    if (peer.handshake.state() == ServerHandshake::State::Failed) {
      session_.noteStranger();
      log(Level::Info, Subsystem::Bootstrap, "a stranger that does not hold the id's secret was turned away");
      return drop(id, "failed to authenticate");
    }
    if (peer.handshake.state() != ServerHandshake::State::Done) return;
    peer.opener.emplace(peer.handshake.keys().toServer, kMaxFrameBytes);
    peer.sealer.emplace(peer.handshake.keys().toClient);
    send(id, Message::Admitted, Payload(""));
  }
  while (const std::optional<Frame> frame = peer.opener->next(peer.input)) {
    session_.onFrame(id, peer.handshake.clientRank(), *frame, Deadline::Clock::now());
    if (session_.isMember(id)) strangers_.erase(id);
  }
  if (peer.opener->broken()) drop(id, "its messages are not genuine");
}

void Root::send(int id, Message kind, const Payload& payload) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  Peer& peer = found->second;
  peer.output.push_back({peer.sealer->seal(static_cast<uint8_t>(kind), payload), payload});
  flush(id, peer);
}

void Root::flush(int id, Peer& peer) {
  if (!peer.flush()) {
    peer.output.clear();
    dead_.emplace_back(id, "the connection broke");
    return;
  }
  const bool writing = !peer.output.empty();
  if (writing == peer.writing) return;
  peer.writing = writing;
  watch(EPOLL_CTL_MOD, peer.socket.get(), static_cast<uint64_t>(id),
        writing ? static_cast<uint32_t>(EPOLLIN | EPOLLOUT) : static_cast<uint32_t>(EPOLLIN));
}

void Root::drop(int id, const std::string& why) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  // Closing alone would not take it out while a process that was forked still has a copy.
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.socket.get(), nullptr);
  peers_.erase(found);
  strangers_.erase(id);
  session_.onClosed(id, why);
}

void Root::reap() {
  while (!dead_.empty()) {
    const auto [id, why] = dead_.back();
    dead_.pop_back();
    drop(id, why);
  }
}

void start(Descriptor listener, const Rendezvous& rendezvous, std::chrono::milliseconds linger) {
  auto root = std::make_shared<Root>(std::move(listener), rendezvous, linger);
  log(Level::Info, Subsystem::Bootstrap, "root listens on ", rendezvous.address.text());
  startServiceThread("topoccl-root", [root] { root->run(); });
}

}  // namespace

UniqueId startRoot(const Settings& settings) {
  const NetworkInterface interface = chooseInterfaces(networkInterfaces(), settings.socketInterfaces).front();
  Descriptor listener = listenOn(interface.address);
  Rendezvous rendezvous;
  rendezvous.address = localAddress(listener.get());
  rendezvous.secret = random<Secret>();
  log(Level::Info, Subsystem::Bootstrap, "Bootstrap: Using ", interface.name, ":", interface.address.text());
  start(std::move(listener), rendezvous, settings.initTimeout);
  return encodeUniqueId(rendezvous);
}

void startRootAt(const Rendezvous& rendezvous, const Settings& settings, const Wait& wait) {
  // A failed communicator must not keep the port from the next one for long.
  const auto linger = std::min<std::chrono::milliseconds>(settings.initTimeout, std::chrono::seconds(5));
  const std::string what = concat("rank 0 listening on ", rendezvous.address.text(), " (NCCL_COMM_ID)");
  for (;;) {
    if (Descriptor listener = tryListen(rendezvous.address))
      return start(std::move(listener), rendezvous, linger);
    throwIfOver(wait, what + ": the port is taken");
    sleepFor(std::chrono::milliseconds(10), wait, what);
  }
}

}  // namespace topoccl
