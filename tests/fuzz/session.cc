// The root's session, with members that are authenticated and may do anything: join, contribute, abort,
// leave, vanish, send nonsense, claim any rank.
//
// Never: a crash, memory for what is only claimed, a word to a connection that is closed, a member that is
// told of a failure twice or not at all (or, where it lives with the root, after its time), a round that
// mixes contributions up, or an end while members are left.
#include <algorithm>
#include <map>
#include <optional>

#include "bootstrap/session.h"
#include "fuzz.h"

namespace topoccl::fuzz {
namespace {

constexpr int kConnections = 6;
constexpr uint64_t kRootProcess = 77;
constexpr std::chrono::milliseconds kLinger{500};  // shorter than those who live with the root are held

class Stage {
 public:
  // The next event that the input describes.
  void event(ByteReader& input) {
    const int connection = below(input, kConnections);
    switch (below(input, 8)) {
      case 0:
      case 1:
        return give(connection, Message::Join, encode(joinFrom(input)), input);
      case 2:
      case 3:
        return give(connection, Message::Gather, encode(contributionFrom(input)), input);
      case 4:
        return give(connection, Message::Leave, "", input);
      case 5:
        return close(connection);
      case 6:
        return tick(std::chrono::milliseconds(input.number<uint16_t>()));
      default:
        return give(connection, static_cast<Message>(input.number<uint8_t>()), std::string(some(input)),
                    input);
    }
  }

  void check() const {
    for (const auto& [connection, line] : lines_) {
      if (!session_.isMember(connection)) continue;  // told as often as it tries to join
      require(line.failures <= 1, "a failure is told once");
      const bool held = line.withRoot && !(heldUntil_ && now_ >= *heldUntil_);
      if (session_.failed() && !line.left && !held)
        require(line.failures == 1, "every member is told of the failure");
    }
    if (session_.finished())
      require(std::none_of(lines_.begin(), lines_.end(),
                           [this](const auto& entry) { return session_.isMember(entry.first); }),
              "no end while members are left");
  }

 private:
  struct Line {
    bool closed = false;
    bool left = false;
    bool withRoot = false;
    int failures = 0;
    uint32_t rank = 0;
    std::string blob;  // its contribution to the open round
  };

  static Join joinFrom(ByteReader& input) {
    Join join;
    join.version = below(input, 16) == 0 ? 2 : 1;
    join.ranks = below(input, 16) == 0 ? static_cast<int32_t>(input.number<uint32_t>()) : 3;
    join.rank = below(input, 16) == 0 ? static_cast<int32_t>(input.number<uint32_t>()) : below(input, 4);
    join.patienceMilliseconds = input.number<uint16_t>();
    join.process = below(input, 2) == 0 ? kRootProcess : 1;
    join.host = some(input);
    return join;
  }

  static Contribution contributionFrom(ByteReader& input) {
    const uint32_t patience = input.number<uint16_t>();
    return {patience, std::string(some(input))};
  }

  void give(int connection, Message kind, const std::string& payload, ByteReader& input) {
    Line& line = lines_[connection];
    if (line.closed) return;
    const bool member = session_.isMember(connection);
    // Before it is given: the last contribution of a round ends that round at once.
    if (const auto contribution = decodeContribution(payload);
        member && kind == Message::Gather && contribution)
      line.blob = contribution->blob;
    if (member && kind == Message::Leave) line.left = true;
    const std::optional<Join> join = decodeJoin(payload);
    const uint32_t claimed =
        join && below(input, 16) != 0 ? static_cast<uint32_t>(join->rank) : input.number<uint32_t>();
    if (!member) line.rank = claimed;
    if (!member && join) line.withRoot = join->process == kRootProcess;
    session_.onFrame(connection, claimed, {static_cast<uint8_t>(kind), payload}, now_);
    if (!member && session_.isMember(connection))
      require(join && static_cast<uint32_t>(join->rank) == claimed, "a member is the rank that it proved");
  }

  void close(int connection) {
    lines_[connection].closed = true;
    session_.onClosed(connection, "closed");
  }

  void tick(std::chrono::milliseconds time) {
    now_ += time;
    if (session_.nextTick() > Deadline::at(now_)) return;
    session_.onTick(now_);
    // The first tick after a failure comes at once, and those who live with the root hear of it that much
    // later.
    if (session_.failed() && !heldUntil_) heldUntil_ = now_ + kLinger;
  }

  void sent(int connection, Message kind, const Payload& payload) {
    Line& line = lines_[connection];
    require(!line.closed, "nothing to a closed connection");
    if (kind == Message::Failure) {
      ++line.failures;
      require(decodeFailure(payload.bytes()).has_value(), "a failure that can be read");
    } else if (kind == Message::Welcome) {
      require(decodeWelcome(payload.bytes()).has_value(), "a welcome that can be read");
    } else if (kind == Message::Gathered) {
      require(!session_.failed(), "no round after a failure");
      requireRound(payload.bytes());
    } else {
      require(kind == Message::Farewell || kind == Message::RootMayGo, "only what a root says");
      require(payload.bytes().empty(), "nothing in it");
    }
  }

  void requireRound(std::string_view bytes) const {
    std::map<uint32_t, std::string> blobs;
    for (const auto& [connection, line] : lines_)
      if (session_.isMember(connection)) blobs[line.rank] = line.blob;
    const auto gathered = decodeBlobs(bytes, blobs.size());
    require(gathered.has_value(), "a round that can be read");
    size_t next = 0;
    for (const auto& [rank, blob] : blobs) require((*gathered)[next++] == blob, "contributions by rank");
  }

  std::map<int, Line> lines_;
  Session::Time now_{std::chrono::hours(1)};
  std::optional<Session::Time> heldUntil_;
  Session session_{{-1, kRootProcess, 1, "roothost"},
                   kLinger,
                   [this](int connection, Message kind, const Payload& p) { sent(connection, kind, p); }};
};

}  // namespace
}  // namespace topoccl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace topoccl::fuzz;
  topoccl::ByteReader input(inputOf(data, size));
  Stage stage;
  while (input.left() > 0) {
    stage.event(input);
    stage.check();
  }
  return 0;
}
