// Tags of a full mesh's connections: the same for all collectives, which share them.
#pragma once

namespace topoccl {

inline constexpr int kScatterTag = 0;    // from one rank to one other
inline constexpr int kBroadcastTag = 1;  // from one rank to all others

}  // namespace topoccl
