// Reduction operators that the user made for one communicator: pre-multiplied sums. Any thread.
#pragma once

#include <map>
#include <mutex>

#include "communicator/call.h"
#include "kernels/types.h"

namespace topoccl {

class UserOperators {
 public:
  // `scalar` is an element of `type`; with `deferred` it is read when each call runs, else now. Returns the
  // operator's value: above every Operator, never used again in this process.
  int create(DataType type, const void* scalar, bool deferred);

  // Both throw InvalidArgument for a value that create() of this communicator did not return, or that was
  // destroyed.
  void destroy(int op);
  Reduction reduction(int op, DataType type) const;  // also where `type` is not the operator's

 private:
  struct Row {
    DataType type;
    const void* scalar;  // nullptr: `scale` was read at creation
    ScaleValue scale;
  };

  mutable std::mutex mutex_;
  std::map<int, Row> rows_;
};

}  // namespace topoccl
