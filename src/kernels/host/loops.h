// The loop of combine.h over vectors, on the calling thread: what the files of the types are made of.
// Read once per target.
#include "kernels/host/targets.h"

#if defined(TOPOCCL_KERNELS_HOST_LOOPS_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOPOCCL_KERNELS_HOST_LOOPS_H
#undef TOPOCCL_KERNELS_HOST_LOOPS_H
#else
#define TOPOCCL_KERNELS_HOST_LOOPS_H
#endif

#include "kernels/combine.h"
#include "kernels/combine_args.h"
#include "kernels/host/combine_of.h"
#include "kernels/host/pack.h"
#include "kernels/host/stream_plan.h"
#include "kernels/per_target.h"

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
  if (args.count == 0 || args.outputCount == 0) return;
  if (args.streamedOutputs != 0) return runStreamed<Element, Op>(args);
  const CombineJob job(args);
  combineRange<HostPack<Element>, Op, false>(job, 0, args.count, SoloGroup());
}

template <class Element>
void copyElements(CombineArgs args) {
  args.count *= sizeof(typename Element::Stored);
  hostCopy(args);
}

template <class Element, class Op>
void combineElements(const CombineArgs& args) {
  if (isCopy<Element, Op>(args)) return copyElements<Element>(args);
  runLoop<Element, Op>(args);
}

template <class Element>
CombineFunction chooseOperator(Operator op) {
  switch (op) {
    case Operator::Sum:
    case Operator::Avg:
      return &combineElements<Element, Sum>;
    case Operator::Prod:
      return &combineElements<Element, Prod>;
    case Operator::Max:
      return &combineElements<Element, Max>;
    case Operator::Min:
      return &combineElements<Element, Min>;
  }
  return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace topoccl
HWY_AFTER_NAMESPACE();

#endif

// In a type's file: its functions for this target and, once, the choice between the targets.
#undef TOPOCCL_COMBINE_FOR_TARGET
#define TOPOCCL_COMBINE_FOR_TARGET(Element)      \
  HWY_BEFORE_NAMESPACE();                        \
  namespace topoccl {                            \
  namespace HWY_NAMESPACE {                      \
  CombineFunction choose##Element(Operator op) { \
    return chooseOperator<Element>(op);          \
  }                                              \
  }                                              \
  }                                              \
  HWY_AFTER_NAMESPACE();

#undef TOPOCCL_HOST_COMBINE
#if HWY_ONCE
#define TOPOCCL_HOST_COMBINE(Element)                   \
  TOPOCCL_COMBINE_FOR_TARGET(Element)                   \
  namespace topoccl {                                   \
  HWY_EXPORT(choose##Element);                          \
  template <>                                           \
  CombineFunction hostCombineOf<Element>(Operator op) { \
    return HWY_DYNAMIC_DISPATCH(choose##Element)(op);   \
  }                                                     \
  }
#else
#define TOPOCCL_HOST_COMBINE(Element) TOPOCCL_COMBINE_FOR_TARGET(Element)
#endif
