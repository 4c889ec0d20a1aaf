#include "bootstrap/unique_id.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/error.h"

namespace topoccl {
namespace {

constexpr std::string_view kMagic{"TOPOCCL\1", 8};
constexpr size_t kHashed = 96;

[[noreturn]] void reject(const std::string& why) {
  throw Error(Code::InvalidArgument,
              concat("the unique id is not valid (", why, "): pass on all 128 bytes of ncclGetUniqueId"));
}

}  // namespace

UniqueId encodeUniqueId(const Rendezvous& rendezvous) {
  const std::string_view address = rendezvous.address.bytes();
  ByteWriter writer;
  writer.raw(kMagic)
      .number(uint8_t{address.size() == 4 ? uint8_t{4} : uint8_t{6}})
      .number(uint8_t{rendezvous.fromCommId})
      .number(rendezvous.address.port())
      .raw(address)
      .raw(std::string(16 - address.size(), '\0'))
      .raw(bytesOf(rendezvous.secret));
  std::string bytes = writer.take();
  bytes.resize(kHashed, '\0');
  bytes += bytesOf(hash({bytes}));
  UniqueId id;
  std::copy(bytes.begin(), bytes.end(), id.bytes.begin());
  return id;
}

Rendezvous decodeUniqueId(const UniqueId& id) {
  const std::string_view bytes(id.bytes.data(), id.bytes.size());
  if (bytes.substr(0, 7) != kMagic.substr(0, 7)) reject("it was not made by this library");
  if (bytes[7] != kMagic[7]) reject("it was made by a version with another format");
  if (bytes.substr(kHashed) != bytesOf(hash({bytes.substr(0, kHashed)}))) reject("bytes are damaged");
  ByteReader reader(bytes.substr(kMagic.size()));
  const auto family = reader.number<uint8_t>();
  const auto fromCommId = reader.number<uint8_t>();
  const auto port = reader.number<uint16_t>();
  const std::string_view address = reader.raw(16);
  if ((family != 4 && family != 6) || port == 0) reject("it names no address");
  Rendezvous rendezvous;
  rendezvous.address = SocketAddress::fromBytes(family == 4 ? address.substr(0, 4) : address, port);
  rendezvous.fromCommId = fromCommId != 0;
  rendezvous.secret = reader.object<Secret>();
  return rendezvous;
}

UniqueId uniqueIdFromCommId(const Settings& settings) {
  Rendezvous rendezvous;
  try {
    rendezvous.address = SocketAddress::parse(settings.commId);
  } catch (const Error& error) {
    throw Error(error.code(), concat("NCCL_COMM_ID=", settings.commId, ": ", error.what()));
  }
  if (rendezvous.address.port() == 0)
    throw Error(Code::InvalidArgument,
                concat("NCCL_COMM_ID=", settings.commId, ": the port is 0; it must be in 1..65535"));
  rendezvous.fromCommId = true;
  const Bytes32 derived = hash({"comm id", settings.commId, settings.secret});
  std::copy_n(derived.begin(), rendezvous.secret.size(), rendezvous.secret.begin());
  return encodeUniqueId(rendezvous);
}

Bytes32 sessionKey(const Secret& secret) {
  return hash({"topoccl session", bytesOf(secret)});
}

}  // namespace topoccl
