#include "common/local_ranks.h"

#include <algorithm>

#include "common/failure.h"

namespace topoccl::bench {

LocalRanks::LocalRanks(const Collective& collective, const Options& options, std::vector<ncclComm_t> comms,
                       int firstRank, int ranks, size_t maxBytes)
    : collective_(collective),
      comms_(std::move(comms)),
      firstRank_(firstRank),
      ranks_(ranks),
      maxBytes_(maxBytes),
      unalign_(options.unalign),
      mulSums_(std::make_unique<MulSums>(comms_, firstRank)) {
  constexpr size_t kLargestElement = 8;
  const Shape shape = collective.shape(maxBytes, ranks);
  for (size_t i = 0; i < comms_.size(); i++) {
    const size_t largestMisalignment = options.unalign * kLargestElement;
    send_.push_back(std::make_unique<GuardedBuffer>(std::max(shape.send, maxBytes), largestMisalignment,
                                                    options.buffers));
    receive_.push_back(std::make_unique<GuardedBuffer>(std::max(shape.receive, maxBytes), largestMisalignment,
                                                       options.buffers));
  }
}

void LocalRanks::misalignFor(const ElementType& type) const {
  for (const auto& buffer : send_) buffer->misalign(unalign_ * type.bytes);
  for (const auto& buffer : receive_) buffer->misalign(unalign_ * type.bytes);
}

Work LocalRanks::work(uint64_t bytes, ncclDataType_t type, int op, int root) const {
  Work work{};
  work.type = &elementType(type);
  work.op = op;
  if (op == kMulSum) {
    work.operators = mulSums_->of(*work.type);
  } else {
    work.operators.assign(comms_.size(), static_cast<ncclRedOp_t>(op));
  }
  work.root = root;
  work.shape = collective_.shape(bytes / work.type->bytes, ranks_);
  work.sendBytes = work.shape.send * work.type->bytes;
  work.receiveBytes = work.shape.receive * work.type->bytes;
  return work;
}

std::byte* LocalRanks::input(const Work& work, int local, bool isInPlace) const {
  if (!isInPlace) return sendBuffer(local).data();
  const size_t offset = work.shape.sendOffset * static_cast<size_t>(rank(local));
  return receiveBuffer(local).data() + offset * work.type->bytes;
}

std::byte* LocalRanks::output(const Work& work, int local, bool isInPlace) const {
  const size_t offset = isInPlace ? work.shape.receiveOffset * static_cast<size_t>(rank(local)) : 0;
  return receiveBuffer(local).data() + offset * work.type->bytes;
}

ncclResult_t LocalRanks::start(const Work& work, bool isInPlace, int number) const {
  const size_t larger = work.largerBytes();
  const size_t places = larger == 0 ? 1 : std::max<size_t>(1, maxBytes_ / larger);
  const size_t shift = larger * (static_cast<size_t>(number) % places);
  const bool isGroup = count() > 1;
  if (isGroup) check(ncclGroupStart());
  ncclResult_t result = ncclSuccess;
  for (int i = 0; i < count() && result == ncclSuccess; i++) {
    result = collective_.start({input(work, i, isInPlace) + shift, output(work, i, isInPlace) + shift,
                                work.shape.argument, work.type->type, work.operators[static_cast<size_t>(i)],
                                work.root, rank(i), ranks_, comm(i)});
  }
  if (!isGroup) return result;
  const ncclResult_t end = ncclGroupEnd();
  return result != ncclSuccess ? result : end;
}

}  // namespace topoccl::bench
