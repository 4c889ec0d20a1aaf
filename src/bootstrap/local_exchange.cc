#include "bootstrap/local_exchange.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <set>

#include "base/logging.h"
#include "base/socket.h"
#include "base/unix_socket.h"
#include "bootstrap/control_connection.h"
#include "bootstrap/handshake.h"
#include "bootstrap/memory_offer.h"
#include "bootstrap/strangers.h"

namespace topoccl {
namespace {

constexpr std::chrono::milliseconds kPause{2};  // before asking again
constexpr std::chrono::seconds kStarvation{2};  // the program may close what it has open

struct Candidate {
  Descriptor socket;
  ServerHandshake handshake;
  std::string input;
  Deadline trial = Deadline::in(kStrangerTime);

  bool silent() const { return handshake.state() == ServerHandshake::State::Hello && input.empty(); }
};

// The leader's side: serves until every receiver has the file. Strangers are turned away or time out. Many
// ranks come at once and on few cores take long to answer: who has spoken keeps its place, and once all
// places are taken by such, the others queue.
class Desk {
 public:
  Desk(Descriptor listener, const MemoryFile& memory, Bootstrap& bootstrap, const Bytes32& key,
       const std::vector<int>& receivers)
      : listener_(std::move(listener)),
        memory_(memory),
        bootstrap_(bootstrap),
        key_(key),
        waiting_(receivers.begin(), receivers.end()) {}

  void serve(const Wait& wait) {
    while (!waiting_.empty()) {
      throwIfOver(wait, what());
      if (const std::optional<PeerFailure> failure = bootstrap_.failure())
        throw Error(Code::RemoteError, "handing out memory: " + failure->reason);
      std::vector<pollfd> entries{{full() ? -1 : listener_.get(), POLLIN, 0}};
      for (const Candidate& candidate : candidates_) entries.push_back({candidate.socket.get(), POLLIN, 0});
      ::poll(entries.data(), entries.size(), static_cast<int>(kWaitSlice.count()));
      std::erase_if(candidates_, [&](Candidate& candidate) { return finished(candidate, wait); });
      if (entries.front().revents) acceptSome(wait);
    }
  }

 private:
  using Place = std::deque<Candidate>::iterator;

  Place oldestSilent() {
    return std::find_if(candidates_.begin(), candidates_.end(),
                        [](const auto& each) { return each.silent(); });
  }

  bool full() { return candidates_.size() >= limit_ && oldestSilent() == candidates_.end(); }

  void acceptSome(const Wait& wait) {
    for (size_t i = 0; i < kMaxAccepts && !full(); ++i) {
      int error = 0;
      Descriptor socket = tryAccept(listener_.get(), error);
      if (!socket) {
        if (error == EMFILE || error == ENFILE) makeRoom(error, wait);
        return;
      }
      starved_ = Deadline::never();
      if (!peerIsSameUser(socket.get())) {
        log(Level::Warn, Subsystem::Bootstrap, "another user's process asked for shared memory: turned away");
        continue;
      }
      if (candidates_.size() >= limit_) candidates_.erase(oldestSilent());
      candidates_.push_back(
          {std::move(socket),
           ServerHandshake(key_, Purpose::MemoryFile, static_cast<uint32_t>(bootstrap_.rank())), "",
           Deadline::in(kStrangerTime)});
    }
  }

  // No descriptor is left: takes a silent one's, or waits rather than asking at once, but not for ever.
  void makeRoom(int error, const Wait& wait) {
    const Place silent = oldestSilent();
    if (silent != candidates_.end()) return static_cast<void>(candidates_.erase(silent));
    if (starved_ == Deadline::never()) starved_ = Deadline::in(kStarvation);
    if (starved_.passed()) throwSystemError(what(), error);
    sleepFor(kWaitSlice, wait, what());
  }

  std::string what() const {
    return concat("rank ", bootstrap_.rank(), " handing memory to rank ", *waiting_.begin());
  }

  bool finished(Candidate& candidate, const Wait& wait) {
    std::array<char, 256> buffer;
    try {
      const auto count =
          receiveNow(candidate.socket.get(), buffer.data(), buffer.size(), "handing out memory");
      if (!count) return candidate.trial.passed();
      if (*count == 0) return true;
      candidate.input.append(buffer.data(), *count);
      const std::string reply = candidate.handshake.advance(candidate.input);
      if (!reply.empty()) sendAll(candidate.socket.get(), reply, briefly(wait), "handing out memory");
      if (candidate.handshake.state() == ServerHandshake::State::Done) {
        handOver(candidate, wait);
        return true;
      }
      return candidate.handshake.state() == ServerHandshake::State::Failed;
    } catch (const AbortedError&) {
      throw;
    } catch (const Error& error) {
      log(Level::Info, Subsystem::Bootstrap, error.what());
      return true;
    }
  }

  void handOver(Candidate& candidate, const Wait& wait) {
    const auto found = waiting_.find(static_cast<int>(candidate.handshake.clientRank()));
    if (found == waiting_.end()) return;
    sendDescriptor(candidate.socket.get(), memory_.descriptor(), briefly(wait), "handing out memory");
    waiting_.erase(found);
  }

  // What we send fits any socket's buffer: a peer that makes us wait is no receiver.
  static Wait briefly(const Wait& wait) {
    return {std::min(wait.deadline, Deadline::in(std::chrono::milliseconds(100))), wait.abort};
  }

  Descriptor listener_;
  const MemoryFile& memory_;
  Bootstrap& bootstrap_;
  Bytes32 key_;
  std::set<int> waiting_;
  std::deque<Candidate> candidates_;
  Deadline starved_ = Deadline::never();  // of descriptors, until then
  const size_t limit_ = strangersLimit();
};

// Throws a RemoteError for what asking again may mend.
Descriptor ask(const MemoryOffer& offer, const Bytes32& key, int rank, int leader, const Wait& wait,
               const std::string& what) {
  const Descriptor socket = connectAbstract(offer.name, wait);
  if (!peerIsSameUser(socket.get()))
    throw Error(Code::InvalidUsage,
                what + ": it runs as another user; start all ranks of a host as one user");
  authenticate(socket.get(), key, Purpose::MemoryFile, static_cast<uint32_t>(rank),
               static_cast<uint32_t>(leader), wait, what);
  return receiveDescriptor(socket.get(), wait, what);
}

// A leader that many ask at once may close a connection: asks until it hands over or fails.
MemoryFile receive(Bootstrap& bootstrap, int leader, const MemoryOffer& offer, const Bytes32& key,
                   const Wait& wait) {
  const std::string what = concat("rank ", bootstrap.rank(), " getting shared memory from rank ", leader);
  Descriptor file;
  while (!file) {
    try {
      file = ask(offer, key, bootstrap.rank(), leader, wait, what);
    } catch (const Error& error) {
      if (error.code() != Code::RemoteError || wait.deadline.passed()) throw;
      if (const std::optional<PeerFailure> failure = bootstrap.failure())
        throw Error(Code::RemoteError, concat(what, ": ", failure->reason));
      sleepFor(kPause, wait, what);
    }
  }
  return MemoryFile::adopt(std::move(file), offer.bytes);
}

// The leader's file and socket, or why there is none.
struct Stock {
  MemoryFile memory;
  Descriptor listener;
  MemoryOffer offer;
};

Stock prepare(const NodeShare& share, const std::function<MemoryFile()>& make) {
  Stock stock;
  try {
    stock.memory = make();
    stock.offer.bytes = stock.memory.bytes();
    if (!share.receivers.empty()) {
      stock.offer.name = concat("topoccl-", hexadecimal(random<uint64_t>()), hexadecimal(random<uint64_t>()));
      stock.listener = listenAbstract(stock.offer.name);
    }
  } catch (const std::exception& error) {
    stock.offer.problem = *error.what() ? error.what() : "unknown error";
  }
  return stock;
}

}  // namespace

MemoryFile shareOnNode(Bootstrap& bootstrap, const NodeShare& share, const std::function<MemoryFile()>& make,
                       const Wait& wait) {
  const int rank = bootstrap.rank();
  const bool leads = rank == share.leader;
  Stock stock;
  if (leads) stock = prepare(share, make);
  const std::vector<std::string> blobs = bootstrap.allGather(leads ? encode(stock.offer) : "");
  for (size_t other = 0; other < blobs.size(); ++other) {
    const std::optional<MemoryOffer> offer = decodeMemoryOffer(blobs[other]);
    if (offer && !offer->problem.empty())
      throw Error(Code::SystemError, concat("rank ", other, " has no memory to share: ", offer->problem));
  }
  const bool receives = std::count(share.receivers.begin(), share.receivers.end(), rank) > 0;
  try {
    const Bytes32 key = bootstrap.deriveKey("memory file");
    if (leads && !share.receivers.empty())
      Desk(std::move(stock.listener), stock.memory, bootstrap, key, share.receivers).serve(wait);
    if (leads) return std::move(stock.memory);
    if (!receives) return MemoryFile();
    const std::optional<MemoryOffer> offer = decodeMemoryOffer(blobs.at(static_cast<size_t>(share.leader)));
    if (!offer) throw Error(Code::InternalError, concat("rank ", share.leader, " is no leader"));
    return receive(bootstrap, share.leader, *offer, key, wait);
  } catch (const Error& error) {
    // The leader and the receivers wait for each other: whoever fails must say so.
    bootstrap.reportAbort(error.what());
    throw;
  }
}

}  // namespace topoccl
