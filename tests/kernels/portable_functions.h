// combine() by threads that share a call, as portable_combine.h makes it for CUDA blocks. The functions of
// all types take a while to compile: they are in two files of their own.
#pragma once

#include <barrier>
#include <cstdint>

#include "kernels/combine_args.h"
#include "kernels/portable_combine.h"

namespace topoccl {

class ThreadGroup {
 public:
  ThreadGroup(uint64_t rank, uint64_t size, std::barrier<>& barrier)
      : rank_(rank), size_(size), barrier_(&barrier) {}
  uint64_t rank() const { return rank_; }
  uint64_t size() const { return size_; }
  void sync() const { barrier_->arrive_and_wait(); }

 private:
  uint64_t rank_;
  uint64_t size_;
  std::barrier<>* barrier_;
};

using GroupFunction = void (*)(const CombineArgs&, const ThreadGroup&);

template <class Element>
GroupFunction portableFunction(Operator op) {
  switch (op) {
    case Operator::Sum:
    case Operator::Avg:
      return &portableCombine<Element, Sum, ThreadGroup>;
    case Operator::Prod:
      return &portableCombine<Element, Prod, ThreadGroup>;
    case Operator::Max:
      return &portableCombine<Element, Max, ThreadGroup>;
    case Operator::Min:
      return &portableCombine<Element, Min, ThreadGroup>;
  }
  return nullptr;
}

extern template GroupFunction portableFunction<Int8>(Operator op);
extern template GroupFunction portableFunction<Uint8>(Operator op);
extern template GroupFunction portableFunction<Int32>(Operator op);
extern template GroupFunction portableFunction<Uint32>(Operator op);
extern template GroupFunction portableFunction<Int64>(Operator op);
extern template GroupFunction portableFunction<Uint64>(Operator op);
extern template GroupFunction portableFunction<Float16>(Operator op);
extern template GroupFunction portableFunction<Float32>(Operator op);
extern template GroupFunction portableFunction<Float64>(Operator op);
extern template GroupFunction portableFunction<Bfloat16>(Operator op);
extern template GroupFunction portableFunction<Float8e4m3>(Operator op);
extern template GroupFunction portableFunction<Float8e5m2>(Operator op);

}  // namespace topoccl
