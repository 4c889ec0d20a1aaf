// What may be said of a message without moving it: whether a slot is the one that was expected, and whether a
// step's data may go by reference.
#pragma once

#include <cstdint>

#include "base/portable.h"
#include "kernels/call_context.h"
#include "kernels/endpoint.h"
#include "schedule/step.h"

namespace topoccl {

TOPOCCL_HOST_DEVICE inline bool isExpected(const SlotHeader& header, const CallContext& context,
                                           uint64_t chunk, uint64_t piece, uint64_t bytes) {
  return header.call == context.call && header.chunk == static_cast<uint32_t>(chunk) &&
         header.piece == static_cast<uint32_t>(piece) && header.bytes == static_cast<uint32_t>(bytes);
}

// Only peers whose memory is in reach may send addresses, and only what fits travels in the header.
TOPOCCL_HOST_DEVICE inline bool isPlausible(const Endpoint& endpoint, const SlotHeader& header,
                                            uint64_t bytes) {
  if (header.kind == SlotKind::Inline) return bytes <= kInlineBytes;
  if (endpoint.direct) return true;
  if (header.direct.placed != 0) return false;
  return header.kind == SlotKind::Staged ||
         (header.kind == SlotKind::Reference && endpoint.memory != nullptr);
}

// Whether an offer is for the message that `header` describes.
TOPOCCL_HOST_DEVICE inline bool isOfferedTo(const Offer& offer, const SlotHeader& header) {
  return offer.call == header.call && offer.chunk == header.chunk && offer.piece == header.piece &&
         offer.bytes == header.bytes;
}

// A step that does nothing but send the caller's buffer may send its address instead.
TOPOCCL_HOST_DEVICE inline bool isReferable(const Step& step, const Operand& input,
                                            const CallContext& context) {
  if (step.inputCount != 1 || step.span != 1 || (step.final && context.divisor != 1)) return false;
  return (input.place == Place::In && !context.scaled) || input.place == Place::Out;
}

// Whether it does, to the readers of that connection.
TOPOCCL_HOST_DEVICE inline bool goesByReference(const Endpoint& endpoint, const Step& step,
                                                const Operand& input, const CallContext& context,
                                                uint64_t bytes) {
  if (bytes < (endpoint.direct ? context.referenceBytes : context.attachBytes)) return false;
  return isReferable(step, input, context) && (endpoint.direct || endpoint.writer.fetched());
}

}  // namespace topoccl
