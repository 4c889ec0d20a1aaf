#include "communicator/part_watch.h"

#include <utility>

#include "base/error.h"

namespace topoccl {

namespace {

constexpr std::chrono::milliseconds kLookEvery{100};  // a system call for each rank

}  // namespace

PartWatch::PartWatch(NodeSetUp node, int rank, std::vector<int> members)
    : node_(std::move(node)), rank_(rank), members_(std::move(members)) {}

void PartWatch::check() {
  if (!next_.passed()) return;
  next_ = Deadline::in(kLookEvery);
  checkNow();
}

void PartWatch::checkNow() const {
  for (const int rank : members_)
    if (node_.isGone(rank))
      throw Error(Code::RemoteError,
                  concat("rank ", rank_, " joining a new communicator: rank ", rank,
                         " of the one it is made of failed: its process is gone without a goodbye"));
}

}  // namespace topoccl
