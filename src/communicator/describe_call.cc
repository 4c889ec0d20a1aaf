#include "communicator/describe_call.h"

#include "algorithms/catalog.h"
#include "base/error.h"
#include "kernels/mix.h"
#include "schedule/goal.h"

namespace topoccl {

namespace {

// How a descriptor spells the pre-multiplied sum: the first value that is no Operator.
constexpr uint8_t kScaledSum = kOperatorCount;

// Numbers of sends in fingerprints; what is larger begins anew, as sizes do (16 TiB).
constexpr uint64_t kNumberBits = 20, kBytesBits = 44;
constexpr uint64_t kBytesMask = (uint64_t{1} << kBytesBits) - 1;
static_assert(kNumberBits + kBytesBits == 64);

std::string operatorName(uint8_t op) {
  if (op == kScaledSum) return "pre-multiplied sum";
  return op < kOperatorCount ? name(static_cast<Operator>(op)) : "of an unknown operator";
}

}  // namespace

CallDescriptor descriptorOf(const CollectiveCall& call, uint64_t number, uint64_t history) {
  CallDescriptor descriptor;
  descriptor.number = number;
  descriptor.count = call.count;
  descriptor.collective = static_cast<uint8_t>(call.collective);
  descriptor.type = static_cast<uint8_t>(call.type);
  if (reduces(call.collective))
    descriptor.op = call.reduction.scaled ? kScaledSum : static_cast<uint8_t>(call.reduction.op);
  descriptor.root = call.root;
  // A step for each is enough: mix() takes different values to different ones.
  const uint64_t what =
      uint64_t{descriptor.collective} << 16 | uint64_t{descriptor.type} << 8 | descriptor.op;
  uint64_t hash = mix(history ^ number);
  hash = mix(hash ^ call.count);
  descriptor.history = mix(hash ^ (what << 32 | static_cast<uint32_t>(call.root)));
  return descriptor;
}

CallDescriptor descriptorOf(const PeerCall& call, uint64_t number) {
  CallDescriptor descriptor;
  descriptor.number = number;
  descriptor.count = call.count;
  descriptor.collective = call.sends ? CallDescriptor::kSend : CallDescriptor::kReceive;
  descriptor.type = static_cast<uint8_t>(call.type);
  descriptor.root = call.peer;
  return descriptor;
}

std::string describe(const CallDescriptor& call) {
  const auto collective = static_cast<Collective>(call.collective);
  if ((!call.isPeerCall() && call.collective >= kCollectives) || call.type >= kDataTypeCount)
    return concat("an unknown call #", call.number);
  std::string text =
      concat(' ', '#', call.number, ' ', name(static_cast<DataType>(call.type)), " x ", call.count);
  if (call.collective == CallDescriptor::kSend) return concat("send", text, " to rank ", call.root);
  if (call.collective == CallDescriptor::kReceive) return concat("recv", text, " from rank ", call.root);
  if (reduces(collective)) text += ' ' + operatorName(call.op);
  if (call.root >= 0) text += concat(" root ", call.root);
  return name(collective) + text;
}

std::string describeWait(const WaitEntry& entry) {
  const std::string peer = concat("rank ", entry.peer);
  switch (entry.what) {
    case Awaited::Connection:
      return concat("waits for ", peer, " to begin it");
    case Awaited::Reader:
      return concat("waits for ", peer, " to stop reading its buffer");
    case Awaited::Data:
    case Awaited::Slot:
      break;
  }
  return concat("lane ", entry.lane, " step ", entry.step, " piece ", entry.piece, " waits for ",
                entry.what == Awaited::Data ? "data from " : "", peer,
                entry.what == Awaited::Data ? "" : " to free a slot");
}

uint64_t peerFingerprint(uint64_t number, uint64_t bytes) {
  return number << kBytesBits | (bytes & kBytesMask);
}

uint64_t peerFingerprintNumber(uint64_t fingerprint) {
  return fingerprint >> kBytesBits;
}

uint64_t peerFingerprintBytes(uint64_t fingerprint) {
  return fingerprint & kBytesMask;
}

}  // namespace topoccl
