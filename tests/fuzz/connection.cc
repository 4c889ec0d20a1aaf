// What arrives on a connection: a handshake, then frames. The first byte chooses the side.
//
// Never: a handshake that succeeds without the key, a frame that its peer did not seal, twice or out of
// order, a frame above the limit, or bytes that are taken though they are not complete.
#include <algorithm>
#include <vector>

#include "base/crypto.h"
#include "bootstrap/frame.h"
#include "bootstrap/handshake.h"
#include "fuzz.h"

namespace topoccl::fuzz {
namespace {

constexpr Bytes32 kKey{1, 2, 3};
constexpr Bytes32 kOtherKey{3, 2, 1};
constexpr size_t kFrameLimit = 300;

// Changes the bytes of a genuine message as the input says: not at all, one bit, its length, or all of it.
std::string tamper(ByteReader& input, std::string bytes) {
  switch (below(input, 6)) {
    case 0:
      if (!bytes.empty()) {
        const size_t at = input.number<uint16_t>() % bytes.size();
        bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(input, 8));
      }
      break;
    case 1:
      bytes.resize(std::min<size_t>(bytes.size(), input.number<uint8_t>()));
      break;
    case 2:
      bytes = some(input);
      break;
    default:
      break;
  }
  return bytes;
}

// Hands `bytes` to `take` in portions, as a network may.
template <class Take>
void inPortions(ByteReader& input, std::string_view bytes, const Take& take) {
  const bool split = below(input, 2) == 1;
  while (!bytes.empty()) {
    const size_t count = split ? std::min<size_t>(1 + input.number<uint8_t>(), bytes.size()) : bytes.size();
    take(bytes.substr(0, count));
    bytes.remove_prefix(count);
  }
}

// The frames that come out are the first of those that were sealed, in order and unchanged; all of them where
// nobody interfered.
void frames(ByteReader& input) {
  // Another key each time: the fuzzer sees what is compared, and would put a MAC that it saw into its next
  // input.
  const auto key = random<Bytes32>();
  FrameSealer sealer(key);
  FrameOpener opener(key, kFrameLimit);
  std::vector<Frame> sealed;
  std::vector<std::string> sent;
  std::string buffer;
  bool genuine = true;
  size_t opened = 0;
  const auto take = [&](std::string_view bytes) {
    buffer += bytes;
    const bool wasBroken = opener.broken();
    while (const std::optional<Frame> frame = opener.next(buffer)) {
      require(!wasBroken, "a broken connection stays broken");
      require(frame->payload.size() <= kFrameLimit, "no frame above the limit");
      require(opened < sealed.size() && frame->kind == sealed[opened].kind &&
                  frame->payload == sealed[opened].payload,
              "only what was sealed, in order");
      ++opened;
    }
  };
  while (input.left() > 0) {
    if (below(input, 8) == 0 && !sent.empty()) {  // again what was sent before
      genuine = false;
      inPortions(input, sent[input.number<uint8_t>() % sent.size()], take);
      continue;
    }
    const uint8_t kind = input.number<uint8_t>();
    std::string payload(some(input));
    if (below(input, 16) == 0) payload.resize(kFrameLimit + below(input, 2));
    std::string whole = sealer.seal(kind, Payload(payload)) + payload;
    const std::string bytes = tamper(input, whole);
    genuine = genuine && bytes == whole && payload.size() <= kFrameLimit;
    sealed.push_back({kind, std::move(payload)});
    sent.push_back(std::move(whole));
    inPortions(input, bytes, take);
  }
  if (genuine) require(opened == sealed.size() && buffer.empty() && !opener.broken(), "all that was sealed");
}

// A client that may lack the key, and somebody in between.
void server(ByteReader& input) {
  const bool holdsKey = below(input, 2) == 1;
  const uint32_t rank = input.number<uint32_t>();
  ServerHandshake server(kKey, Purpose::Control, kRootRank);
  ClientHandshake client(holdsKey ? kKey : kOtherKey, Purpose::Control, rank);
  std::string buffer, challenge;
  const auto take = [&](std::string_view bytes) {
    buffer += bytes;
    challenge += server.advance(buffer);
  };
  const std::string hello = tamper(input, client.hello());
  inPortions(input, hello, take);
  bool genuine = holdsKey && hello == client.hello();
  require(challenge.empty() || challenge.size() == kChallengeBytes, "one challenge at most");
  std::string proof;
  if (const std::optional<std::string> answer = client.answer(challenge)) proof = *answer;
  std::string answered = tamper(input, proof);
  inPortions(input, answered, take);
  const std::string further(input.raw(input.left()));
  take(further);
  // A byte that was cut off is guessed again once in a while.
  answered += further;
  genuine = genuine && !proof.empty() && answered.starts_with(proof);
  if (server.state() == ServerHandshake::State::Done) {
    require(genuine && server.clientRank() == rank, "the proof was made with the key, for this rank");
    require(
        server.keys().toServer == client.keys().toServer && server.keys().toClient == client.keys().toClient,
        "both have the same keys");
    require(buffer == answered.substr(proof.size()), "what follows the proof is left alone");
  }
  if (genuine) require(server.state() == ServerHandshake::State::Done, "whoever holds the key gets in");
}

// A server that may lack the key, and somebody in between.
void client(ByteReader& input) {
  const bool holdsKey = below(input, 2) == 1;
  ClientHandshake client(kKey, Purpose::MemoryFile, 1);
  ServerHandshake server(holdsKey ? kKey : kOtherKey, Purpose::MemoryFile, input.number<uint32_t>());
  std::string hello = client.hello();
  const std::string challenge = server.advance(hello);
  const std::string received = tamper(input, challenge);
  const bool accepted = client.answer(received).has_value();
  require(accepted == (holdsKey && received == challenge), "the challenge was made with the key");
}

}  // namespace
}  // namespace topoccl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace topoccl::fuzz;
  constexpr void (*kSides[])(topoccl::ByteReader&) = {frames, server, client};
  topoccl::ByteReader input(inputOf(data, size));
  kSides[below(input, std::size(kSides))](input);
  return 0;
}
