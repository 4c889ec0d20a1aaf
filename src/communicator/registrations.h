// Buffers that the user registered. Host memory gains nothing by it: peers of this process reach it anyway,
// those of others don't. So this only keeps book, to refuse what was never registered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace topoccl {

class Registrations {
 public:
  // Never nullptr, different for each registration.
  void* add(const void* buffer, size_t bytes);
  // Throws InvalidArgument for a handle that add() did not return, or that was removed.
  void remove(void* handle);

 private:
  std::mutex mutex_;
  std::map<uintptr_t, std::pair<const void*, size_t>> rows_;
  uintptr_t next_ = 1;
};

}  // namespace topoccl
