// int32 buffers of all ranks of an all-reduce: patterned, guarded on both sides, off alignment.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/mix.h"

namespace topoccl::test {

// A buffer with guards, starting `offset` bytes off alignment.
class Int32Buffer {
 public:
  Int32Buffer(uint64_t count, size_t offset) : bytes_(count * 4), begin_(kGuardBytes + offset) {
    memory_.assign(begin_ + bytes_ + kGuardBytes, kGuard);
  }
  unsigned char* data() { return memory_.data() + begin_; }
  void set(uint64_t i, int32_t value) { std::memcpy(data() + 4 * i, &value, 4); }
  int32_t get(uint64_t i) {
    int32_t value;
    std::memcpy(&value, data() + 4 * i, 4);
    return value;
  }
  bool guardsIntact() const {
    for (size_t i = 0; i < begin_; ++i)
      if (memory_[i] != kGuard) return false;
    for (size_t i = begin_ + bytes_; i < memory_.size(); ++i)
      if (memory_[i] != kGuard) return false;
    return true;
  }

 private:
  static constexpr size_t kGuardBytes = 64;
  static constexpr unsigned char kGuard = 0xa5;

  size_t bytes_;
  size_t begin_;
  std::vector<unsigned char> memory_;
};

// Element i of rank's input in a call.
inline int32_t inputElement(int rank, uint64_t i, int call) {
  return static_cast<int32_t>(mix(mix(static_cast<uint64_t>(rank), i), static_cast<uint64_t>(call)) %
                              100003) -
         50000;
}

class Int32Buffers {
 public:
  Int32Buffers(int ranks, uint64_t count, int call, bool inPlace = false)
      : ranks_(ranks), count_(count), call_(call), inPlace_(inPlace) {
    in_.reserve(static_cast<size_t>(ranks));
    out_.reserve(static_cast<size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      const size_t offset = static_cast<size_t>(rank % 3) * 4 + static_cast<size_t>(call % 2);
      in_.emplace_back(count, offset);
      out_.emplace_back(count, offset);
      for (uint64_t i = 0; i < count; ++i) in_.back().set(i, inputElement(rank, i, call));
      ins.push_back(in_.back().data());
      outs.push_back(inPlace ? in_.back().data() : out_.back().data());
    }
  }

  // What is wrong with `rank`'s result; empty when every element is the exact sum (or, with a divisor,
  // average), the input is unchanged and nothing was written outside.
  std::string flawOf(int rank, int32_t divisor = 1) {
    const auto r = static_cast<size_t>(rank);
    Int32Buffer& result = inPlace_ ? in_[r] : out_[r];
    for (uint64_t i = 0; i < count_; ++i) {
      int32_t expected = 0;
      for (int peer = 0; peer < ranks_; ++peer) expected += inputElement(peer, i, call_);
      expected /= divisor;
      if (result.get(i) != expected)
        return concat("rank ", rank, " element ", i, " of ", count_, ": ", result.get(i), ", not ", expected);
      if (!inPlace_ && in_[r].get(i) != inputElement(rank, i, call_))
        return concat("rank ", rank, " element ", i, ": the input changed");
    }
    if (!in_[r].guardsIntact() || !out_[r].guardsIntact())
      return concat("rank ", rank, ": written outside the buffer");
    return "";
  }

  std::vector<const void*> ins;
  std::vector<void*> outs;

 private:
  int ranks_;
  uint64_t count_;
  int call_;
  bool inPlace_;
  std::vector<Int32Buffer> in_, out_;
};

}  // namespace topoccl::test
