// Communicators with deadlines of their own.
#pragma once

#include "communicator/ranks.h"
#include "topoccl.h"

namespace topoccl::test {

inline topocclDeadlines_t deadlines(double init, double collective, double report) {
  topocclDeadlines_t result = TOPOCCL_DEADLINES_INITIALIZER;
  result.init = init;
  result.collective = collective;
  result.report = report;
  return result;
}

inline ncclComm_t joined(const ncclUniqueId& id, int ranks, int rank, const topocclDeadlines_t& limits) {
  ncclComm_t comm = nullptr;
  EXPECT_EQ(topocclCommInitRank(&comm, ranks, id, rank, nullptr, &limits), ncclSuccess)
      << ncclGetLastError(nullptr);
  return comm;
}

}  // namespace topoccl::test
