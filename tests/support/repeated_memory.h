// Gigabytes that take megabytes: a random pattern, mapped again and again. Its period is a prime number of
// pages, so that two places which powers of two lie between never look alike.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace topoccl::test {

class RepeatedMemory {
 public:
  static size_t period() { return 4099 * static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

  static std::vector<uint8_t> pattern(uint64_t seed) {
    std::vector<uint8_t> bytes(period());
    uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
    for (uint8_t& byte : bytes) {
      state = state * 6364136223846793005 + 1442695040888963407;
      byte = static_cast<uint8_t>(state >> 56);
    }
    return bytes;
  }

  // `pattern` has period() bytes. Who may write to one copy writes to all of them.
  RepeatedMemory(size_t bytes, const std::vector<uint8_t>& pattern, int protection = PROT_READ)
      : mapped_((bytes + period() - 1) / period() * period()) {
    const int file = ::memfd_create("pattern", MFD_CLOEXEC);
    if (file < 0) throw std::runtime_error("memfd_create");
    for (size_t at = 0; at < pattern.size();) {
      const ssize_t written = ::write(file, &pattern[at], pattern.size() - at);
      if (written <= 0) throw std::runtime_error("write");
      at += static_cast<size_t>(written);
    }
    void* const base =
        ::mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) throw std::runtime_error("mmap");
    data_ = static_cast<uint8_t*>(base);
    for (size_t at = 0; at < mapped_; at += period())
      if (::mmap(data_ + at, period(), protection, MAP_SHARED | MAP_FIXED | MAP_POPULATE, file, 0) ==
          MAP_FAILED)
        throw std::runtime_error("mmap of a period");
    ::close(file);
  }
  ~RepeatedMemory() { ::munmap(data_, mapped_); }
  RepeatedMemory(const RepeatedMemory&) = delete;
  RepeatedMemory& operator=(const RepeatedMemory&) = delete;

  uint8_t* data() const { return data_; }

 private:
  size_t mapped_;
  uint8_t* data_ = nullptr;
};

}  // namespace topoccl::test
