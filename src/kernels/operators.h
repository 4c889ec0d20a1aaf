// Reduction operators, one struct each, written once over a pack (combine.h says what a pack is).
#if defined(TOPOCCL_KERNELS_OPERATORS_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOPOCCL_KERNELS_OPERATORS_H
#undef TOPOCCL_KERNELS_OPERATORS_H
#else
#define TOPOCCL_KERNELS_OPERATORS_H
#endif

#include "kernels/per_target.h"

TOPOCCL_BEGIN_KERNELS

// Integers wrap. Averages and pre-multiplied sums are sums, too: only sums scale and divide.
struct Sum {
  static constexpr bool kSums = true;
  template <class Pack>
  TOPOCCL_KERNEL static typename Pack::Value apply(typename Pack::Value a, typename Pack::Value b) {
    return Pack::add(a, b);
  }
};

// Integers wrap.
struct Prod {
  static constexpr bool kSums = false;
  template <class Pack>
  TOPOCCL_KERNEL static typename Pack::Value apply(typename Pack::Value a, typename Pack::Value b) {
    return Pack::multiply(a, b);
  }
};

// As fmax: a NaN loses to a number. And +0 beats -0, so that the result does not depend on the order of a
// processor's operands: equal numbers differ in the sign of zero at most, and `and` clears it.
struct Max {
  static constexpr bool kSums = false;
  template <class Pack>
  TOPOCCL_KERNEL static typename Pack::Value apply(typename Pack::Value a, typename Pack::Value b) {
    const typename Pack::Value larger = Pack::select(Pack::greater(a, b), a, b);
    if constexpr (Pack::Element::kFloating) {
      const typename Pack::Value number = Pack::select(Pack::isNan(b), a, larger);
      return Pack::select(Pack::equal(a, b), Pack::bitAnd(a, b), number);
    } else {
      return larger;
    }
  }
};

// As fmin, likewise: -0 beats +0, and `or` sets its sign.
struct Min {
  static constexpr bool kSums = false;
  template <class Pack>
  TOPOCCL_KERNEL static typename Pack::Value apply(typename Pack::Value a, typename Pack::Value b) {
    const typename Pack::Value smaller = Pack::select(Pack::greater(b, a), a, b);
    if constexpr (Pack::Element::kFloating) {
      const typename Pack::Value number = Pack::select(Pack::isNan(b), a, smaller);
      return Pack::select(Pack::equal(a, b), Pack::bitOr(a, b), number);
    } else {
      return smaller;
    }
  }
};

// For copies, where there is never a second operand.
struct First {
  static constexpr bool kSums = false;
  template <class Pack>
  TOPOCCL_KERNEL static typename Pack::Value apply(typename Pack::Value a, typename Pack::Value) {
    return a;
  }
};

TOPOCCL_END_KERNELS

#endif
