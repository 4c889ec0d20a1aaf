// What a process has once, whatever the number of communicators: the node memories that several of its ranks
// share (one mapping each, so that addresses are comparable). Any thread may call.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/deadline.h"
#include "transport/node_memory.h"

namespace topoccl {

// The node memory known under `key` in this process. Exactly one caller per key passes `make`, which is
// called without locks held; the others wait for its result and call `check` now and then, which throws to
// end the wait. An exception of `make` reaches all of the `users`.
std::shared_ptr<NodeMemory> sharedNodeMemory(uint64_t key, int users,
                                             const std::function<std::shared_ptr<NodeMemory>()>& make,
                                             const std::function<void()>& check);

}  // namespace topoccl
