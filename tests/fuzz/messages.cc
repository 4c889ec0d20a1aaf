// Decoders of byte strings that ranks and roots send each other. The first byte chooses the decoder, the rest
// is what it gets.
//
// Never: a read beyond the bytes, memory for a length that is only claimed, control characters or endless
// text in what is decoded, or a message that means something else once it is encoded and decoded again.
#include <algorithm>

#include "bootstrap/frame.h"
#include "bootstrap/handshake.h"
#include "bootstrap/memory_offer.h"
#include "bootstrap/messages.h"
#include "bootstrap/unique_id.h"
#include "communicator/rank_introduction.h"
#include "communicator/split_wish.h"
#include "fuzz.h"

namespace topoccl::fuzz {
namespace {

void requirePrintable(const std::string& text) {
  require(text.size() <= kMaxTextBytes, "text is bounded");
  require(text == printable(text), "text is printable");
}

// What `decode` accepts, encodes to bytes of the same number; these are the fixed point of both.
template <class Decode, class Encode>
auto roundTrip(std::string_view bytes, const Decode& decode, const Encode& encode) {
  auto message = decode(bytes);
  if (!message) return message;
  const std::string again = encode(*message);
  require(again.size() == bytes.size(), "as many bytes when encoded again");
  const auto same = decode(again);
  require(same && encode(*same) == again, "the same when decoded again");
  return message;
}

// For messages that hold no text: nothing in them is changed by decoding.
template <class Decode, class Encode>
void exactRoundTrip(std::string_view bytes, const Decode& decode, const Encode& encode) {
  const auto message = decode(bytes);
  if (message) require(encode(*message) == bytes, "the same bytes when encoded again");
}

template <class Message>
std::string encodeIt(const Message& message) {
  return encode(message);
}

void join(std::string_view bytes) {
  const auto message = roundTrip(bytes, decodeJoin, encodeIt<Join>);
  if (message) requirePrintable(message->host);
}

void welcome(std::string_view bytes) {
  const auto message = roundTrip(bytes, decodeWelcome, encodeIt<Welcome>);
  if (message) requirePrintable(message->host);
}

void failure(std::string_view bytes) {
  const auto message = roundTrip(bytes, decodeFailure, encodeIt<Failure>);
  if (!message) return;
  requirePrintable(message->reason);
  require(message->code != Code::Success && message->code <= Code::InProgress, "a failure has a code");
}

void offer(std::string_view bytes) {
  const auto message = roundTrip(bytes, decodeMemoryOffer, encodeIt<MemoryOffer>);
  if (message) requirePrintable(message->problem);
}

void contribution(std::string_view bytes) {
  exactRoundTrip(bytes, decodeContribution, encodeIt<Contribution>);
}

void blobs(std::string_view bytes) {
  ByteReader input(bytes);
  const size_t count = input.number<uint32_t>();
  exactRoundTrip(
      input.raw(input.left()), [&](std::string_view rest) { return decodeBlobs(rest, count); }, encodeBlobs);
}

void handshake(std::string_view bytes) {
  exactRoundTrip(bytes, decodeHello, encodeHello);
  exactRoundTrip(bytes, decodeFrameHead, encodeFrameHead);
  exactRoundTrip(bytes, decodeChallenge, encodeChallenge);
}

void introduction(std::string_view bytes) {
  try {
    const std::string blob(bytes);
    const RankIntroduction rank = decodeIntroduction(blob, 3);
    require(rank.cores.size() == rank.facts.coreWords, "as many words as it says");
    require(encode(rank) == blob, "the same bytes when encoded again");
  } catch (const Error& error) {
    require(error.code() == Code::RemoteError, "a bad introduction is its sender's fault");
  }
}

void wish(std::string_view bytes) {
  try {
    const SplitWish wish = decodeWish(std::string(bytes), 3);
    require(encodeWish(wish.color, wish.key) == bytes, "the same bytes when encoded again");
    require(wish.color >= -1 && wish.rank == 3, "a colour in range");
  } catch (const Error&) {
  }
}

// An id carries a hash: half of the inputs get the right one.
void uniqueId(std::string_view bytes) {
  UniqueId id;
  std::copy_n(bytes.begin(), std::min(bytes.size(), id.bytes.size()), id.bytes.begin());
  if (bytes.size() < id.bytes.size()) {
    const Bytes32 right = hash({std::string_view(id.bytes.data(), 96)});
    std::copy(right.begin(), right.end(), id.bytes.begin() + 96);
  }
  try {
    const Rendezvous decoded = decodeUniqueId(id);
    require(decoded.address.port() != 0, "an id names a port");
    const Rendezvous again = decodeUniqueId(encodeUniqueId(decoded));
    require(again.address == decoded.address && again.secret == decoded.secret &&
                again.fromCommId == decoded.fromCommId,
            "the same when decoded again");
  } catch (const Error& error) {
    require(error.code() == Code::InvalidArgument, "a bad id is an argument's fault");
  }
}

}  // namespace
}  // namespace topoccl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace topoccl::fuzz;
  constexpr void (*kDecoders[])(std::string_view) = {join,  welcome,   failure,      offer, contribution,
                                                     blobs, handshake, introduction, wish,  uniqueId};
  if (size == 0) return 0;
  kDecoders[data[0] % std::size(kDecoders)](inputOf(data + 1, size - 1));
  return 0;
}
