#include "bootstrap/messages.h"

#include <algorithm>

#include "base/bytes.h"

namespace topoccl {
namespace {

uint32_t onWire(int32_t value) {
  return static_cast<uint32_t>(value);
}
int32_t offWire(uint32_t value) {
  return static_cast<int32_t>(value);
}
std::string_view cut(std::string_view text) {
  return text.substr(0, kMaxTextBytes);
}

}  // namespace

std::string encode(const Join& join) {
  return ByteWriter()
      .number(join.version)
      .number(onWire(join.ranks))
      .number(onWire(join.rank))
      .number(join.patienceMilliseconds)
      .number(join.process)
      .number(join.processId)
      .text(cut(join.host))
      .take();
}

std::optional<Join> decodeJoin(std::string_view bytes) {
  ByteReader reader(bytes);
  Join join;
  join.version = reader.number<uint32_t>();
  join.ranks = offWire(reader.number<uint32_t>());
  join.rank = offWire(reader.number<uint32_t>());
  join.patienceMilliseconds = reader.number<uint32_t>();
  join.process = reader.number<uint64_t>();
  join.processId = reader.number<uint32_t>();
  join.host = printable(reader.text(kMaxTextBytes));
  if (!reader.done()) return std::nullopt;
  return join;
}

std::string encode(const Contribution& contribution) {
  return ByteWriter().number(contribution.patienceMilliseconds).raw(contribution.blob).take();
}

std::optional<Contribution> decodeContribution(std::string_view bytes) {
  ByteReader reader(bytes);
  Contribution contribution;
  contribution.patienceMilliseconds = reader.number<uint32_t>();
  contribution.blob = reader.raw(reader.left());
  if (!reader.done()) return std::nullopt;
  return contribution;
}

std::string encode(const Welcome& welcome) {
  return ByteWriter()
      .number(onWire(welcome.rootRank))
      .number(welcome.process)
      .number(welcome.processId)
      .text(cut(welcome.host))
      .take();
}

std::optional<Welcome> decodeWelcome(std::string_view bytes) {
  ByteReader reader(bytes);
  Welcome welcome;
  welcome.rootRank = offWire(reader.number<uint32_t>());
  welcome.process = reader.number<uint64_t>();
  welcome.processId = reader.number<uint32_t>();
  welcome.host = printable(reader.text(kMaxTextBytes));
  if (!reader.done()) return std::nullopt;
  return welcome;
}

std::string encode(const Failure& failure) {
  return ByteWriter()
      .number(static_cast<uint32_t>(failure.code))
      .number(onWire(failure.rank))
      .text(cut(failure.reason))
      .take();
}

std::optional<Failure> decodeFailure(std::string_view bytes) {
  ByteReader reader(bytes);
  Failure failure;
  const auto code = reader.number<uint32_t>();
  failure.rank = offWire(reader.number<uint32_t>());
  failure.reason = printable(reader.text(kMaxTextBytes));
  if (!reader.done() || code == 0 || code > static_cast<uint32_t>(Code::InProgress)) return std::nullopt;
  failure.code = static_cast<Code>(code);
  return failure;
}

std::string encodeBlobs(const std::vector<std::string>& blobs) {
  ByteWriter writer;
  for (const std::string& blob : blobs) writer.text(blob);
  return writer.take();
}

std::optional<std::vector<std::string>> decodeBlobs(std::string_view bytes, size_t count) {
  // Each blob takes 4 bytes at least: a wrong count can't make us reserve more than the bytes that came.
  if (count > bytes.size() / sizeof(uint32_t)) return std::nullopt;
  std::vector<std::string> blobs;
  blobs.reserve(count);
  ByteReader reader(bytes);
  for (size_t i = 0; i < count; ++i) blobs.emplace_back(reader.text(kMaxGatherBytes));
  if (!reader.done()) return std::nullopt;
  return blobs;
}

std::string printable(std::string_view text) {
  std::string result(cut(text));
  std::replace_if(
      result.begin(), result.end(), [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; },
      '?');
  return result;
}

uint32_t toMilliseconds(std::chrono::steady_clock::duration duration) {
  const auto count = std::chrono::ceil<std::chrono::milliseconds>(duration).count();
  return static_cast<uint32_t>(std::clamp<int64_t>(count, 0, UINT32_MAX));
}

}  // namespace topoccl
