// Calls as ranks post them for each other, and as messages name them.
#pragma once

#include <cstdint>
#include <string>

#include "communicator/call.h"
#include "transport/board.h"

namespace topoccl {

// `history` of the call before; 0 for the first. Ranks whose histories are equal have called the same so far.
CallDescriptor descriptorOf(const CollectiveCall& call, uint64_t number, uint64_t history);
CallDescriptor descriptorOf(const PeerCall& call, uint64_t number);

// "all_reduce #17 float32 x 1000 sum", "send #3 int8 x 10 to rank 2". Any bytes may be described.
std::string describe(const CallDescriptor& call);

// "lane 0 step 2 piece 0 waits for data from rank 1"
std::string describeWait(const WaitEntry& entry);

// What the slots of a send carry, and the receive expects: its number and size, which can be read off.
uint64_t peerFingerprint(uint64_t number, uint64_t bytes);
uint64_t peerFingerprintNumber(uint64_t fingerprint);
uint64_t peerFingerprintBytes(uint64_t fingerprint);

}  // namespace topoccl
