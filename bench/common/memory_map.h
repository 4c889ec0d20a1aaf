// Memory shared between the drivers of a bench.
#pragma once

#include <cstddef>

namespace topoccl::bench {

class MemoryMap {
 public:
  // Anonymous, zeroed; for the threads of this process.
  static MemoryMap anonymous(size_t bytes);
  // The first `bytes` of the file behind `descriptor`, which stays open and the caller's.
  static MemoryMap ofFile(int descriptor, size_t bytes);

  ~MemoryMap();
  MemoryMap(MemoryMap&& other) noexcept;
  MemoryMap& operator=(MemoryMap&&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  MemoryMap(int descriptor, size_t bytes);

  void* data_;
  size_t bytes_;
};

}  // namespace topoccl::bench
