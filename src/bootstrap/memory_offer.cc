#include "bootstrap/memory_offer.h"

#include "base/bytes.h"
#include "bootstrap/messages.h"

namespace topoccl {
namespace {

constexpr size_t kMaxNameBytes = 100;

}  // namespace

std::string encode(const MemoryOffer& offer) {
  return ByteWriter()
      .text(offer.problem.substr(0, kMaxTextBytes))
      .text(offer.name)
      .number(offer.bytes)
      .take();
}

std::optional<MemoryOffer> decodeMemoryOffer(std::string_view bytes) {
  ByteReader reader(bytes);
  MemoryOffer offer;
  offer.problem = printable(reader.text(kMaxTextBytes));
  offer.name = reader.text(kMaxNameBytes);
  offer.bytes = reader.number<uint64_t>();
  if (!reader.done()) return std::nullopt;
  return offer;
}

}  // namespace topoccl
