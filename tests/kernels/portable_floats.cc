#include "kernels/portable_functions.h"

namespace topoccl {

template GroupFunction portableFunction<Float16>(Operator op);
template GroupFunction portableFunction<Float32>(Operator op);
template GroupFunction portableFunction<Float64>(Operator op);
template GroupFunction portableFunction<Bfloat16>(Operator op);
template GroupFunction portableFunction<Float8e4m3>(Operator op);
template GroupFunction portableFunction<Float8e5m2>(Operator op);

}  // namespace topoccl
