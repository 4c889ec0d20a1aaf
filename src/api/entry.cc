#include "api/entry.h"

#include <iterator>
#include <new>
#include <string>
#include <utility>

#include "api/announce.h"
#include "api/arguments.h"
#include "api/config.h"
#include "api/guard.h"
#include "communicator/communicator.h"

namespace topoccl::api {
namespace {

Communicator** handles(ncclComm_t* comm) {
  return reinterpret_cast<Communicator**>(comm);
}

// Queries: a live communicator and a place for the answer.
template <class Out, class Get>
ncclResult_t query(const char* function, ncclComm_t comm, Out* out, const char* argument, Get&& get) {
  return guarded(function, [&] {
    checkPointer(out, argument);
    *out = get(*checkedCommunicator(comm));
  });
}

// Handlers of exit run when main's thread_local objects are gone.
thread_local bool threadEnds = false;
struct TextOfThread {
  std::string text;
  ~TextOfThread() { threadEnds = true; }
};

}  // namespace

ncclResult_t getVersion(int* version) {
  return guarded("ncclGetVersion", [&] {
    checkPointer(version, "version");
    *version = NCCL_VERSION_CODE;
  });
}

const char* getErrorString(ncclResult_t result) {
  // NCCL's texts, word for word: programs compare them.
  static constexpr const char* kTexts[] = {
      "no error",
      "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
      "unhandled system error (run with NCCL_DEBUG=INFO for details)",
      "internal error - please report this issue to the NCCL developers",
      "invalid argument (run with NCCL_DEBUG=WARN for details)",
      "invalid usage (run with NCCL_DEBUG=WARN for details)",
      "remote process exited or there was a network error",
      "NCCL operation in progress",
      "timeout",
  };
  const auto index = static_cast<unsigned>(result);
  return index < std::size(kTexts) ? kTexts[index] : "unknown result code";
}

const char* getLastError(ncclComm_t) {
  // A copy of each thread's own, so that another thread's error can't change the text being read.
  thread_local TextOfThread of;
  const ErrnoKeeper keeper;
  if (std::exchange(threadEnds, false)) new (&of.text) std::string;
  std::string& text = of.text;
  try {
    text = lastError();
  } catch (...) {
    return "out of memory";
  }
  return text.c_str();  // NOLINT(clang-analyzer-cplusplus.InnerPointer): until this thread's next call
}

ncclResult_t getUniqueId(ncclUniqueId* uniqueId) {
  return guarded("ncclGetUniqueId", [&] {
    checkPointer(uniqueId, "uniqueId");
    makeUniqueId(uniqueId->internal);
  });
}

ncclResult_t commInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  return guardedInGroup("ncclCommInitRank", [&] {
    checkPointer(comm, "comm");
    checkRankCount(nranks);
    announce(rank);
    Communicator::initRank(handles(comm), nranks, commId.internal, rank, CommConfig{});
  });
}

ncclResult_t commInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                ncclConfig_t* config) {
  return guardedInGroup("ncclCommInitRankConfig", [&] {
    checkPointer(comm, "comm");
    checkRankCount(nranks);
    announce(rank);
    Communicator::initRank(handles(comm), nranks, commId.internal, rank, readConfig(config));
  });
}

ncclResult_t commInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds,
                                  ncclConfig_t* config) {
  return guardedInGroup("ncclCommInitRankScalable", [&] {
    checkPointer(newcomm, "newcomm");
    checkRankCount(nranks);
    checkInput(commIds, "commIds");
    if (nId < 1 || nId > nranks) {
      throw Error(Code::InvalidArgument, concat("nId is ", nId, "; it must be in 1..", nranks, " (nranks)"));
    }
    // One root serves all ranks; further ids are for spreading them over several.
    Communicator::initRank(handles(newcomm), nranks, commIds[0].internal, myrank, readConfig(config));
  });
}

ncclResult_t commSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config) {
  return guardedInGroup("ncclCommSplit", [&] {
    checkPointer(newcomm, "newcomm");
    const CommConfig wanted = readConfig(config);
    checkedCommunicator(comm)->split(handles(newcomm), color, key, config == nullptr ? nullptr : &wanted);
  });
}

ncclResult_t commShrink(ncclComm_t comm, const int* excludeRanksList, int excludeRanksCount,
                        ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags) {
  return guardedInGroup("ncclCommShrink", [&] {
    checkPointer(newcomm, "newcomm");
    if (excludeRanksCount < 0)
      throw Error(Code::InvalidArgument,
                  concat("excludeRanksCount is ", excludeRanksCount, "; it must be at least 0"));
    if (excludeRanksCount > 0) checkInput(excludeRanksList, "excludeRanksList");
    if (shrinkFlags != NCCL_SHRINK_DEFAULT && shrinkFlags != NCCL_SHRINK_ABORT)
      throw Error(Code::InvalidArgument,
                  concat("shrinkFlags is ", shrinkFlags,
                         "; it must be 0 (NCCL_SHRINK_DEFAULT) or 1 (NCCL_SHRINK_ABORT)"));
    const CommConfig wanted = readConfig(config);
    checkedCommunicator(comm)->shrink(
        handles(newcomm), {excludeRanksList, excludeRanksList + excludeRanksCount},
        shrinkFlags == NCCL_SHRINK_ABORT, config == nullptr ? nullptr : &wanted);
  });
}

ncclResult_t commRegister(ncclComm_t comm, void* buff, size_t size, void** handle) {
  return guarded("ncclCommRegister", [&] {
    checkPointer(handle, "handle");
    checkInput(buff, "buff");
    if (size == 0) throw Error(Code::InvalidArgument, "size is 0; it must be at least 1");
    *handle = checkedCommunicator(comm)->registerBuffer(buff, size);
  });
}

ncclResult_t commDeregister(ncclComm_t comm, void* handle) {
  return guarded("ncclCommDeregister", [&] { checkedCommunicator(comm)->deregisterBuffer(handle); });
}

ncclResult_t commInitAll(ncclComm_t* comm, int ndev, const int* devlist) {
  return guarded("ncclCommInitAll", [&] {
    checkPointer(comm, "comm");
    if (ndev < 1) throw Error(Code::InvalidArgument, concat("ndev is ", ndev, "; it must be at least 1"));
    announce(0);
    Communicator::initAll(handles(comm), ndev, devlist);
  });
}

ncclResult_t commFinalize(ncclComm_t comm) {
  return guarded("ncclCommFinalize", [&] { checkedCommunicator(comm)->finalize(); });
}

ncclResult_t commDestroy(ncclComm_t comm) {
  return guarded("ncclCommDestroy", [&] { checkedCommunicator(comm)->destroy(); });
}

ncclResult_t commAbort(ncclComm_t comm) {
  return guarded("ncclCommAbort", [&] { checkedCommunicator(comm)->abort(); });
}

ncclResult_t commGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  return query("ncclCommGetAsyncError", comm, asyncError, "asyncError",
               [](const Communicator& c) { return static_cast<ncclResult_t>(c.asyncError()); });
}

ncclResult_t commCount(ncclComm_t comm, int* count) {
  return query("ncclCommCount", comm, count, "count", [](const Communicator& c) { return c.ranks(); });
}

ncclResult_t commCuDevice(ncclComm_t comm, int* device) {
  return query("ncclCommCuDevice", comm, device, "device", [](const Communicator& c) { return c.device(); });
}

ncclResult_t commUserRank(ncclComm_t comm, int* rank) {
  return query("ncclCommUserRank", comm, rank, "rank", [](const Communicator& c) { return c.rank(); });
}

ncclResult_t groupStart() {
  return guarded("ncclGroupStart", [] { topoccl::groupStart(); });
}

ncclResult_t groupEnd() {
  return guarded("ncclGroupEnd", [] { topoccl::groupEnd(); });
}

ncclResult_t memAlloc(void** ptr, size_t size) {
  return guarded("ncclMemAlloc", [&] {
    checkPointer(ptr, "ptr");
    *ptr = size == 0 ? nullptr : topoccl::memAlloc(size);
  });
}

ncclResult_t memFree(void* ptr) {
  return guarded("ncclMemFree", [&] {
    if (ptr != nullptr) topoccl::memFree(ptr);
  });
}

}  // namespace topoccl::api
