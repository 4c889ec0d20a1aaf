#include "kernels/portable_functions.h"

namespace topoccl {

template GroupFunction portableFunction<Int8>(Operator op);
template GroupFunction portableFunction<Uint8>(Operator op);
template GroupFunction portableFunction<Int32>(Operator op);
template GroupFunction portableFunction<Uint32>(Operator op);
template GroupFunction portableFunction<Int64>(Operator op);
template GroupFunction portableFunction<Uint64>(Operator op);

}  // namespace topoccl
