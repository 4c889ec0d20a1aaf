// combine() on the calling thread, compiled for every vector instruction set worth having and chosen once,
// when hostCombine() is asked for the function.

// SSSE3 without SSE4 died with the processors of 2008. The scalable vectors of Arm and RISC-V can't be
// members of a struct, which blocks of packs are; Arm falls back to NEON.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/combine.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include <hwy/highway.h>

#include "kernels/combine.h"
#include "kernels/combine_args.h"
#include "kernels/host/pack.h"
#include "kernels/host/stream_plan.h"

HWY_BEFORE_NAMESPACE();
namespace topoccl {
namespace HWY_NAMESPACE {

// Apart from plain stores, and not inlined with them: one function for both spilled the pointers.
template <class Element, class Op>
HWY_NOINLINE void runStreamed(const CombineArgs& args) {
  using Pack = HostPack<Element>;
  const StreamPlan plan = planStreams(args, Pack::kBytes, sizeof(typename Element::Stored));
  CombineJob job(args);
  job.streamedOutputs = plan.outputs;
  if (plan.head != 0) combineRest<Pack, Op>(job, 0, plan.head);
  combineRange<Pack, Op, true>(job, plan.head, args.count, SoloGroup());
}

template <class Element, class Op>
void runLoop(const CombineArgs& args) {
  if (args.streamedOutputs != 0) return runStreamed<Element, Op>(args);
  const CombineJob job(args);
  combineRange<HostPack<Element>, Op, false>(job, 0, args.count, SoloGroup());
}

void copyBytes(const CombineArgs& args) {
  if (args.count == 0 || args.outputCount == 0) return;
  runLoop<Byte, First>(args);
}

template <class Element>
void copyElements(CombineArgs args) {
  args.count *= sizeof(typename Element::Stored);
  copyBytes(args);
}

template <class Element, class Op>
void combineElements(const CombineArgs& args) {
  if (args.count == 0 || args.outputCount == 0) return;
  if (isCopy<Element, Op>(args)) return copyElements<Element>(args);
  runLoop<Element, Op>(args);
}

template <class Element>
CombineFunction chooseOperator(Operator op) {
  switch (op) {
    case Operator::Sum:
    case Operator::Avg:
      return &combineElements<Element, Sum>;
    case Operator::Max:
      return &combineElements<Element, Max>;
    default:
      return nullptr;
  }
}

CombineFunction chooseCombine(DataType type, Operator op) {
  switch (type) {
    case DataType::Int32:
      return chooseOperator<Int32>(op);
    case DataType::Float32:
      return chooseOperator<Float32>(op);
    case DataType::Float64:
      return chooseOperator<Float64>(op);
    case DataType::Bfloat16:
      return chooseOperator<Bfloat16>(op);
    default:
      return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace topoccl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace topoccl {

HWY_EXPORT(chooseCombine);
HWY_EXPORT(copyBytes);

CombineFunction hostCombine(DataType type, Operator op) {
  return HWY_DYNAMIC_DISPATCH(chooseCombine)(type, op);
}

void hostCopy(const CombineArgs& args) {
  HWY_DYNAMIC_DISPATCH(copyBytes)(args);
}

}  // namespace topoccl
#endif
