#include "communicator/registrations.h"

#include <bit>

#include "base/error.h"

namespace topoccl {

void* Registrations::add(const void* buffer, size_t bytes) {
  const std::scoped_lock lock(mutex_);
  const uintptr_t handle = next_++;
  rows_[handle] = {buffer, bytes};
  return std::bit_cast<void*>(handle);
}

void Registrations::remove(void* handle) {
  const std::scoped_lock lock(mutex_);
  if (rows_.erase(reinterpret_cast<uintptr_t>(handle)) == 0)
    throw Error(Code::InvalidArgument,
                concat("handle is ", handle, ", which ncclCommRegister of this communicator did not return"));
}

}  // namespace topoccl
