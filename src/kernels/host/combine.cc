// Chooses the host's function; those of each type are in files of their own.
#include "kernels/combine_args.h"
#include "kernels/elements.h"
#include "kernels/host/combine_of.h"

namespace topoccl {

CombineFunction hostCombine(DataType type, Operator op) {
  return withElement(type, [&](auto element) { return hostCombineOf<decltype(element)>(op); });
}

}  // namespace topoccl
