// The ranks of one driver (thread): their communicators and buffers, and how one call of all of them is made.
#pragma once

#include <memory>
#include <vector>

#include "common/collective.h"
#include "common/elements.h"
#include "common/guarded_buffer.h"
#include "common/mul_sums.h"
#include "common/options.h"

namespace topoccl::bench {

// One row of the table, as calls see it.
struct Work {
  const ElementType* type;
  int op;                              // ncclRedOp_t, kMulSum or kNoOperator
  std::vector<ncclRedOp_t> operators;  // what each local rank calls it
  int root;
  Shape shape;
  size_t sendBytes;
  size_t receiveBytes;

  size_t largerBytes() const { return sendBytes > receiveBytes ? sendBytes : receiveBytes; }
};

class LocalRanks {
 public:
  // comms: of ranks firstRank, firstRank + 1, ... of `ranks`; not owned. Buffers hold rows up to `maxBytes`.
  LocalRanks(const Collective& collective, const Options& options, std::vector<ncclComm_t> comms,
             int firstRank, int ranks, size_t maxBytes);

  int count() const { return static_cast<int>(comms_.size()); }
  int rank(int local) const { return firstRank_ + local; }
  int ranks() const { return ranks_; }
  ncclComm_t comm(int local) const { return comms_[static_cast<size_t>(local)]; }
  GuardedBuffer& sendBuffer(int local) const { return *send_[static_cast<size_t>(local)]; }
  GuardedBuffer& receiveBuffer(int local) const { return *receive_[static_cast<size_t>(local)]; }
  const Collective& collective() const { return collective_; }

  // Buffers start -u elements of `type` off a page boundary from here on.
  void misalignFor(const ElementType& type) const;

  // Throws Failure if the library refuses to make the operator.
  Work work(uint64_t bytes, ncclDataType_t type, int op, int root) const;

  // Where a call of `work` reads and writes, without a shift.
  std::byte* input(const Work& work, int local, bool isInPlace) const;
  std::byte* output(const Work& work, int local, bool isInPlace) const;

  // Call number `number` of a timed loop, by all ranks: each number uses another part of the buffers, so that
  // small rows do not always hit the same cache lines.
  ncclResult_t start(const Work& work, bool isInPlace, int number) const;

 private:
  const Collective& collective_;
  std::vector<ncclComm_t> comms_;
  int firstRank_;
  int ranks_;
  size_t maxBytes_;
  uint64_t unalign_;
  std::vector<std::unique_ptr<GuardedBuffer>> send_;
  std::vector<std::unique_ptr<GuardedBuffer>> receive_;
  std::unique_ptr<MulSums> mulSums_;
};

}  // namespace topoccl::bench
