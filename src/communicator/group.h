// Groups: calls between groupStart and groupEnd of one thread are collected and run together, so that one
// thread can drive several ranks. Nested groups run when the outermost ends.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "base/error.h"
#include "communicator/task.h"

namespace topoccl {

class Communicator;

namespace group {

bool open();  // this thread is inside a group

// Inside a group: an init to run at its end, on a thread of its own, side by side with the group's others;
// but those of the same `parent` run on one, in order. `abort` ends it.
void addInit(std::function<void()> init, std::shared_ptr<std::atomic<bool>> abort,
             const Communicator* parent = nullptr);

// A call to run at the group's end, after the inits; at once where none is open.
void addCall(IssuedCall call);

// Inside a group: a call was refused; groupEnd will report it and run nothing.
void refuse(const Error& error);
void refuseForMemory() noexcept;

void start();
void end();

}  // namespace group
}  // namespace topoccl
