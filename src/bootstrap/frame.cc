#include "bootstrap/frame.h"

#include "base/bytes.h"

namespace topoccl {
namespace {

constexpr size_t kMacAt = 16;

Bytes32 frameMac(const Bytes32& key, std::string_view head, const Bytes32& payloadHash) {
  return mac(key, {head.substr(0, kMacAt), bytesOf(payloadHash)});
}

}  // namespace

std::string encodeFrameHead(const FrameHead& head) {
  return ByteWriter()
      .number(head.length)
      .number(uint32_t{head.kind})
      .number(head.sequence)
      .raw(bytesOf(head.mac))
      .take();
}

std::optional<FrameHead> decodeFrameHead(std::string_view bytes) {
  ByteReader reader(bytes);
  FrameHead head;
  head.length = reader.number<uint32_t>();
  const auto kind = reader.number<uint32_t>();
  head.sequence = reader.number<uint64_t>();
  head.mac = reader.object<Bytes32>();
  if (!reader.done() || kind > UINT8_MAX) return std::nullopt;
  head.kind = static_cast<uint8_t>(kind);
  return head;
}

std::string FrameSealer::seal(uint8_t kind, const Payload& payload) {
  FrameHead head{static_cast<uint32_t>(payload.bytes().size()), kind, sequence_++, {}};
  head.mac = frameMac(key_, encodeFrameHead(head), payload.digest());
  return encodeFrameHead(head);
}

std::optional<Frame> FrameOpener::next(std::string& input) {
  if (broken_ || input.size() < kFrameHeadBytes) return std::nullopt;
  const std::string_view headBytes = std::string_view(input).substr(0, kFrameHeadBytes);
  const std::optional<FrameHead> head = decodeFrameHead(headBytes);
  broken_ = !head || head->length > limit_ || head->sequence != sequence_;
  if (broken_ || input.size() - kFrameHeadBytes < head->length) return std::nullopt;
  const std::string_view payload = std::string_view(input).substr(kFrameHeadBytes, head->length);
  broken_ = !sameBytes(bytesOf(head->mac), bytesOf(frameMac(key_, headBytes, hash({payload}))));
  if (broken_) return std::nullopt;
  Frame frame{head->kind, std::string(payload)};
  input.erase(0, kFrameHeadBytes + head->length);
  ++sequence_;
  return frame;
}

}  // namespace topoccl
