// Threads of the library that nobody joins.
#pragma once

#include <functional>

namespace topoccl {

// `name` is a literal of at most 15 bytes. Runs `body` on a new detached thread with all signals blocked, so
// that the program's handlers never run on it. `body` is destroyed when it returns; an exception is logged
// and ends the thread. Throws SystemError when no thread can be made.
void startServiceThread(const char* name, std::function<void()> body);

}  // namespace topoccl
