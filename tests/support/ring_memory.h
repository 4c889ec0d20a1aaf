// Zeroed, aligned memory for one ring.
#pragma once

#include <cstring>
#include <memory>
#include <new>

#include "kernels/slot_ring.h"

namespace topoccl::test {

class RingMemory {
 public:
  explicit RingMemory(RingShape shape)
      : shape_(shape), memory_(::operator new (RingView::bytes(shape), std::align_val_t{kLineBytes})) {
    std::memset(memory_.get(), 0, RingView::bytes(shape));
  }

  void* data() const { return memory_.get(); }
  RingView view() const { return RingView(memory_.get(), shape_); }

 private:
  struct Free {
    void operator()(void* memory) const { ::operator delete (memory, std::align_val_t{kLineBytes}); }
  };

  RingShape shape_;
  std::unique_ptr<void, Free> memory_;
};

}  // namespace topoccl::test
