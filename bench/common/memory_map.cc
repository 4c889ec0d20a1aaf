#include "common/memory_map.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "common/failure.h"

namespace topoccl::bench {

MemoryMap::MemoryMap(int descriptor, size_t bytes) : bytes_(bytes) {
  const int flags = MAP_SHARED | (descriptor < 0 ? MAP_ANONYMOUS : 0);
  data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, descriptor, 0);
  if (data_ == MAP_FAILED) {
    throw Failure(ExitCode::InternalError, std::string("mapping shared memory: ") + std::strerror(errno));
  }
}

MemoryMap MemoryMap::anonymous(size_t bytes) {
  return MemoryMap(-1, bytes);
}

MemoryMap MemoryMap::ofFile(int descriptor, size_t bytes) {
  return MemoryMap(descriptor, bytes);
}

MemoryMap::MemoryMap(MemoryMap&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

MemoryMap::~MemoryMap() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace topoccl::bench
