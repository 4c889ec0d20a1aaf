// The machine under the stepper that moves real data: it turns a step's operands into addresses, has
// combine() move the bytes, publishes what it filled and frees what it read.
//
// One function computes addresses and one call moves data, whatever the step. Host threads and CUDA blocks
// share this source: all threads of a Group share one machine; its first thread polls and fills in
// addresses, all of them move data.
//
// Direct access: a large message between ranks of one address space need not pass through the slot.
//   reference   a step that only sends a caller's buffer publishes its address; the reader reads there;
//   offer       a step that only stores has offered its destination ahead; the producer writes there.
// Both touch memory of a rank that may abort meanwhile, so they are bracketed by a guard (see DirectGuard).
// A reference to another process's memory is fetched by the kernel: what isn't there any more is an error,
// and the reader looks for poison after it.
#pragma once

#include <cstdint>

#include "kernels/call_context.h"
#include "kernels/combine_args.h"
#include "kernels/cross_memory.h"
#include "kernels/endpoint.h"
#include "kernels/group.h"
#include "kernels/message.h"
#include "kernels/step_extents.h"
#include "schedule/chunk_map.h"
#include "schedule/step.h"

namespace topoccl {

// Mover: void combine(const CombineArgs&), void copy(const CombineArgs&) (count in bytes), done by the group;
// when they return, the whole group is done.
template <Group Threads, class Mover>
class MemoryMachine {
 public:
  // `inputs` and `outputs` hold an address per operand of the widest step; outputs also one per reader that
  // may have offered a destination.
  TOPOCCL_HOST_DEVICE MemoryMachine(Threads group, Endpoint* const* endpoints, const void** inputs,
                                    void** outputs)
      : group_(group), endpoints_(endpoints), inputs_(inputs), outputs_(outputs) {}

  TOPOCCL_HOST_DEVICE void start(const CallContext& context, Mover mover) {
    context_ = context;
    mover_ = mover;
  }
  TOPOCCL_HOST_DEVICE const CallContext& context() const { return context_; }
  TOPOCCL_HOST_DEVICE const MachineFailure& failure() const { return failure_; }

  TOPOCCL_HOST_DEVICE uint64_t pieces() const { return context_.map.pieces; }
  TOPOCCL_HOST_DEVICE void begin(uint32_t, uint64_t) {}

  TOPOCCL_HOST_DEVICE bool ready(const Operand& operand) {
    if (group_.rank() == 0) {
      Endpoint& endpoint = *endpoints_[operand.connection];
      answer_ = operand.place == Place::Send ? endpoint.writer.ready() : endpoint.reader.ready();
    }
    return agreed();
  }

  TOPOCCL_HOST_DEVICE bool perform(const Step& step, const Operand* inputs, const Operand* outputs,
                                   uint64_t piece) {
    if (group_.rank() == 0) {
      answer_ = prepare(step, inputs, outputs, piece);
      // Whom the data reaches by reference may read while this rank does its own copies.
      if (answer_ && referred_) {
        publishSlots(step, outputs);
        fullFence();
        wakeReaders(step, outputs);
      }
    }
    if (!agreed()) return false;
    move(step, inputs, outputs, piece);
    group_.sync();
    if (group_.rank() == 0) finish(step, inputs, outputs);
    return true;
  }

  // Posts the destinations of store-only steps as far ahead as the ring has slots, counted from `next`: the
  // first message that is not read yet.
  TOPOCCL_HOST_DEVICE void offerAhead(Endpoint& endpoint, uint64_t next) {
    const uint64_t limit = next + endpoint.reader.ring().shape().slots;
    while (endpoint.offered < limit && endpoint.offerPiece < context_.map.pieces) {
      const uint32_t chunk = endpoint.offerChunks[endpoint.offerIndex];
      if (chunk != kNoOffer) postOffer(endpoint, chunk);
      ++endpoint.offered;
      if (++endpoint.offerIndex == endpoint.offerCount) {
        endpoint.offerIndex = 0;
        ++endpoint.offerPiece;
      }
    }
  }

 private:
  struct Extent {
    ElementRange in, out;
  };

  TOPOCCL_HOST_DEVICE bool agreed() {
    group_.sync();
    const bool answer = answer_;
    group_.sync();
    return answer;
  }

  TOPOCCL_HOST_DEVICE uint64_t stepBytes(const Step& step, uint64_t piece) const {
    return stepElements(context_.map, step, piece) * context_.elementBytes;
  }

  // Checks what arrived, describes what will be sent and collects the addresses that don't depend on the
  // extent: inputs_[i] of received slots, outputs_[0 .. slotOutputs_) of slots and offered destinations.
  TOPOCCL_HOST_DEVICE bool prepare(const Step& step, const Operand* inputs, const Operand* outputs,
                                   uint64_t piece) {
    const uint64_t bytes = stepBytes(step, piece);
    touches_ = false;
    placed_ = false;
    for (uint32_t i = 0; i < step.inputCount; ++i)
      if (inputs[i].place == Place::Receive && !prepareReceive(i, inputs[i], step, outputs, piece, bytes))
        return false;
    slotOutputs_ = 0;
    streamedSlots_ = 0;
    uint32_t sends = 0, references = 0;
    for (uint32_t i = 0; i < step.outputCount; ++i) {
      if (outputs[i].place != Place::Send) continue;
      ++sends;
      if (prepareSend(outputs[i], step, inputs, piece, bytes)) ++references;
    }
    // Not where some of the readers have offered destinations, which this step fills.
    referred_ = sends != 0 && references == sends && slotOutputs_ == 0;
    return !touches_ || touch();
  }

  TOPOCCL_HOST_DEVICE bool prepareReceive(uint32_t index, const Operand& operand, const Step& step,
                                          const Operand* outputs, uint64_t piece, uint64_t bytes) {
    Endpoint& endpoint = *endpoints_[operand.connection];
    SlotHeader& header = endpoint.reader.header();
    if (!isExpected(header, context_, step.inChunk, piece, bytes) || !isPlausible(endpoint, header, bytes)) {
      failure_.found = header;
      return refuse(operand, step, bytes);
    }
    if (header.kind == SlotKind::Inline) {
      inputs_[index] = header.payload;
      return true;
    }
    inputs_[index] = RingView::data(header);
    // Asked again, of our own memory: another process may have changed the header since it was plausible.
    if (!endpoint.direct) {
      if (endpoint.memory != nullptr && bytes >= context_.attachBytes) lookHowFar(endpoint, bytes);
      if (header.kind == SlotKind::Reference && endpoint.memory != nullptr)
        return fetch(index, endpoint, header.direct.reference, step, outputs, piece, bytes) ||
               refuse(operand, step, bytes);
      return true;
    }
    if ((header.direct.placed >> (endpoint.reader.reader() % kMaxPlacedReaders)) & 1) {
      placed_ = true;
      return true;
    }
    if (header.kind == SlotKind::Reference) {
      inputs_[index] = header.direct.reference;
      touches_ = true;
    }
    return true;
  }

  TOPOCCL_HOST_DEVICE bool refuse(const Operand& operand, const Step& step, uint64_t bytes) {
    failure_.connection = operand.connection;
    failure_.expectedChunk = step.inChunk;
    failure_.expectedBytes = static_cast<uint32_t>(bytes);
    return false;
  }

  // Gets what `endpoint`'s slot refers to in another process: to where the step stores what it receives, if
  // it does nothing else with it first, otherwise into the slot.
  TOPOCCL_HOST_DEVICE bool fetch([[maybe_unused]] uint32_t index, [[maybe_unused]] Endpoint& endpoint,
                                 [[maybe_unused]] const void* from, [[maybe_unused]] const Step& step,
                                 [[maybe_unused]] const Operand* outputs, [[maybe_unused]] uint64_t piece,
                                 [[maybe_unused]] uint64_t bytes) {
#if !defined(__CUDA_ARCH__)
    if (step.inputCount == 1 && step.span == 1)
      for (uint32_t i = 0; i < step.outputCount; ++i)
        if (outputs[i].place != Place::Send)
          inputs_[index] = bufferAddress(outputs[i].place, pieceRange(context_.map, step.outChunk, piece));
    failure_.readError = endpoint.memory->read(const_cast<void*>(inputs_[index]), from, bytes);
    if (failure_.readError != 0) return false;
    fullFence();
    // Its rank may have given up, and its user have changed the buffer, before it was read.
    failure_.poisoned = loadRelaxed(context_.guard.poison) != 0;
#endif
    return !failure_.poisoned;
  }

  // Whether the data goes by reference.
  TOPOCCL_HOST_DEVICE bool prepareSend(const Operand& operand, const Step& step, const Operand* inputs,
                                       uint64_t piece, uint64_t bytes) {
    Endpoint& endpoint = *endpoints_[operand.connection];
    SlotHeader& header = endpoint.writer.header();
    header.call = context_.call;
    header.chunk = step.outChunk;
    header.piece = static_cast<uint32_t>(piece);
    header.bytes = static_cast<uint32_t>(bytes);
    if (bytes <= kInlineBytes) {
      header.kind = SlotKind::Inline;
      outputs_[slotOutputs_++] = header.payload;
      return false;
    }
    header.kind = SlotKind::Staged;
    header.direct.placed = 0;
    const uint32_t readers = endpoint.writer.ring().shape().readers;
    if (endpoint.direct && step.span == 1 && bytes >= context_.offerBytes &&
        placeWhereOffered(endpoint, header, readers) == readers)
      return false;
    if (!goesByReference(endpoint, step, inputs[0], context_, bytes)) {
      outputs_[slotOutputs_++] = RingView::data(header);
      return false;
    }
    header.kind = SlotKind::Reference;
    header.direct.reference = bufferAddress(inputs[0].place, pieceRange(context_.map, step.inChunk, piece));
    endpoint.referencedUpTo = endpoint.writer.next() + 1;
    if (!endpoint.direct) storeRelaxed(distanceLine(header, bytes), piece);
    return true;
  }

  // Adds the destinations that readers offered for exactly this message; returns how many did.
  TOPOCCL_HOST_DEVICE uint32_t placeWhereOffered(Endpoint& endpoint, SlotHeader& header, uint32_t readers) {
    if (readers > kMaxPlacedReaders) return 0;
    uint32_t count = 0;
    for (uint32_t reader = 0; reader < readers; ++reader) {
      const Offer* offer = endpoint.writer.offer(reader);
      if (offer == nullptr || !isOfferedTo(*offer, header)) continue;
      header.direct.placed |= uint64_t{1} << reader;
      if (context_.streamed && slotOutputs_ < 64) streamedSlots_ |= uint64_t{1} << slotOutputs_;
      outputs_[slotOutputs_++] = offer->address;
      touches_ = true;
      ++count;
    }
    return count;
  }

  TOPOCCL_HOST_DEVICE void postOffer(Endpoint& endpoint, uint32_t chunk) {
    const ElementRange range = pieceRange(context_.map, chunk, endpoint.offerPiece);
    const uint64_t bytes = range.count * context_.elementBytes;
    if (bytes < context_.offerBytes || bytes == 0) return;
    Offer offer{};
    offer.call = context_.call;
    offer.chunk = chunk;
    offer.piece = static_cast<uint32_t>(endpoint.offerPiece);
    offer.bytes = static_cast<uint32_t>(bytes);
    offer.address = bufferAddress(Place::Out, range);
    endpoint.reader.offer(endpoint.offered, offer);
  }

  TOPOCCL_HOST_DEVICE bool touch() {
    storeRelaxed(context_.guard.touching, 1U);
    fullFence();
    if (loadRelaxed(context_.guard.poison) == 0) return true;
    storeRelease(context_.guard.touching, 0U);
    failure_.poisoned = true;
    return false;
  }

  TOPOCCL_HOST_DEVICE unsigned char* bufferAddress(Place place, const ElementRange& range) const {
    const uint64_t offset = range.begin * context_.elementBytes;
    if (place == Place::Out) return context_.out + offset;
    if (place == Place::Scratch) return context_.scratch + offset;
    return const_cast<unsigned char*>(context_.in) + offset;
  }

  TOPOCCL_HOST_DEVICE void move(const Step& step, const Operand* inputs, const Operand* outputs,
                                uint64_t piece) {
    if (placed_) return;
    uint64_t skip = 0;  // bytes of the slots that earlier extents took
    for (uint32_t i = 0; i < extentsOf(context_.map, step); ++i) {
      const Extent extent{extentRange(context_.map, step.inChunk, step.span, i, piece),
                          extentRange(context_.map, step.outChunk, step.span, i, piece)};
      moveExtent(step, inputs, outputs, extent, skip);
      skip = extent.in.count * context_.elementBytes;
    }
  }

  // `skip` is how far the slots' addresses have to move on since the last extent.
  TOPOCCL_HOST_DEVICE void moveExtent(const Step& step, const Operand* inputs, const Operand* outputs,
                                      const Extent& extent, uint64_t skip) {
    CombineArgs args;
    if (group_.rank() == 0) outputCount_ = gather(step, inputs, outputs, extent, skip);
    group_.sync();
    args.inputs = inputs_;
    args.inputCount = step.inputCount;
    args.outputs = outputs_;
    args.outputCount = outputCount_;
    args.count = extent.in.count;
    args.streamedOutputs = streamedSlots_ | streamedBuffers_;
    if (args.count == 0 || args.outputCount == 0) {
      group_.sync();  // the next extent's addresses take the place of this one's
      return;
    }
    const bool divides = step.final && context_.divisor != 1;
    if (step.inputCount == 1 && scaledInputs_ == 0 && !divides) {
      args.count *= context_.elementBytes;
      mover_.copy(args);
      return;
    }
    args.scaledInputs = scaledInputs_;
    args.scale = context_.scale;
    args.divisor = divides ? context_.divisor : 1;
    mover_.combine(args);
  }

  TOPOCCL_HOST_DEVICE uint32_t gather(const Step& step, const Operand* inputs, const Operand* outputs,
                                      const Extent& extent, uint64_t skip) {
    scaledInputs_ = 0;
    for (uint32_t i = 0; i < step.inputCount; ++i) {
      if (inputs[i].place == Place::Receive) {
        inputs_[i] = static_cast<const unsigned char*>(inputs_[i]) + skip;
        continue;
      }
      inputs_[i] = bufferAddress(inputs[i].place, extent.in);
      if (inputs[i].place == Place::In && context_.scaled) scaledInputs_ |= uint64_t{1} << (i < 63 ? i : 63);
    }
    for (uint32_t i = 0; i < slotOutputs_; ++i) outputs_[i] = static_cast<unsigned char*>(outputs_[i]) + skip;
    uint32_t count = slotOutputs_;
    streamedBuffers_ = 0;
    for (uint32_t i = 0; i < step.outputCount; ++i) {
      if (outputs[i].place == Place::Send) continue;
      unsigned char* const address = bufferAddress(outputs[i].place, extent.out);
      if (step.inputCount == 1 && address == inputs_[0] && scaledInputs_ == 0 && !step.final) continue;
      if (context_.streamed && outputs[i].place == Place::Out && count < 64)
        streamedBuffers_ |= uint64_t{1} << count;
      outputs_[count++] = address;
    }
    return count;
  }

  TOPOCCL_HOST_DEVICE void finish(const Step& step, const Operand* inputs, const Operand* outputs) {
    if ((streamedSlots_ | streamedBuffers_) != 0) streamFence();  // before anything says that data is there
    if (touches_) storeRelease(context_.guard.touching, 0U);
    if (!referred_) publishSlots(step, outputs);
    for (uint32_t i = 0; i < step.inputCount; ++i) {
      if (inputs[i].place != Place::Receive) continue;
      Endpoint& endpoint = *endpoints_[inputs[i].connection];
      // Before the slot is free: the producer that gets it looks for the offer at once.
      if (endpoint.offerCount != 0) offerAhead(endpoint, endpoint.reader.next() + 1);
      endpoint.reader.free();
    }
    fullFence();
    for (uint32_t i = 0; i < step.inputCount; ++i)
      if (inputs[i].place == Place::Receive) wakePeers(*endpoints_[inputs[i].connection]);
    if (!referred_) wakeReaders(step, outputs);
  }

  TOPOCCL_HOST_DEVICE void publishSlots(const Step& step, const Operand* outputs) {
    for (uint32_t i = 0; i < step.outputCount; ++i)
      if (outputs[i].place == Place::Send) endpoints_[outputs[i].connection]->writer.publish();
  }
  TOPOCCL_HOST_DEVICE void wakeReaders(const Step& step, const Operand* outputs) {
    for (uint32_t i = 0; i < step.outputCount; ++i)
      if (outputs[i].place == Place::Send) wakePeers(*endpoints_[outputs[i].connection]);
  }

  TOPOCCL_HOST_DEVICE static void wakePeers([[maybe_unused]] const Endpoint& endpoint) {
#if !defined(__CUDA_ARCH__)
    ringBells(endpoint);
#endif
  }

  Threads group_;
  Mover mover_{};
  Endpoint* const* endpoints_;
  const void** inputs_;
  void** outputs_;
  CallContext context_;
  MachineFailure failure_;

  // Shared by the group between two syncs.
  bool answer_ = false;
  bool touches_ = false;   // this step reads or writes another rank's buffers
  bool placed_ = false;    // this step's data is already where it belongs
  bool referred_ = false;  // all that this step sends goes by reference to all
  uint32_t slotOutputs_ = 0;
  uint32_t outputCount_ = 0;
  uint64_t streamedSlots_ = 0;
  uint64_t streamedBuffers_ = 0;
  uint64_t scaledInputs_ = 0;
};

}  // namespace topoccl
