// Memory that ends, at both ends, where the mapping ends: a stray byte is a crash.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace topoccl {

// `bytes` bytes that touch an inaccessible page: before them (Front) or after them (Back).
class Guarded {
 public:
  enum class Side { Front, Back };

  Guarded(size_t bytes, Side side) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t body = (bytes + page - 1) / page * page;
    mapped_ = body + 2 * page;
    base_ = static_cast<uint8_t*>(mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED) throw std::runtime_error("mmap");
    if (body != 0 && mprotect(base_ + page, body, PROT_READ | PROT_WRITE) != 0)
      throw std::runtime_error("mprotect");
    data_ = side == Side::Front ? base_ + page : base_ + page + body - bytes;
  }
  ~Guarded() { munmap(base_, mapped_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  uint8_t* data() const { return data_; }

 private:
  uint8_t* base_ = nullptr;
  uint8_t* data_ = nullptr;
  size_t mapped_ = 0;
};

}  // namespace topoccl
