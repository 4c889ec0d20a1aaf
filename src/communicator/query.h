// A query inside a communicator, of any thread: keeps destroy and abort from pulling it away.
#pragma once

#include <cstdint>

#include "communicator/communicator.h"
#include "kernels/sync.h"

namespace topoccl {

class Communicator::Query {
 public:
  explicit Query(const Communicator& communicator) : queries_(const_cast<uint32_t*>(&communicator.queries_)) {
    communicator.enter(queries_);
  }
  ~Query() { fetchAdd(queries_, ~0U); }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

 private:
  uint32_t* queries_;
};

}  // namespace topoccl
