#include "device/host.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/fork_safety.h"

namespace topoccl {

namespace {

// Sizes of live allocations: munmap wants them back, and a stray pointer must not unmap anything.
struct Allocations {
  std::mutex mutex;
  std::map<void*, size_t> bytes;
};

Allocations& allocations() {
  static auto* const all = new Allocations;  // outlives every user, also at exit
  return *all;
}

std::mutex& allocationsMutex() {
  return allocations().mutex;
}

const ForkHook kHook = ForkHook::holding<allocationsMutex>(ForkHook::Level::Outer);

}  // namespace

std::vector<uint64_t> allowedCores() {
  for (size_t cores = 1024; cores <= 1 << 20; cores *= 4) {
    cpu_set_t* const set = CPU_ALLOC(cores);
    if (set == nullptr) return {};
    const size_t bytes = CPU_ALLOC_SIZE(cores);
    const bool known = ::sched_getaffinity(0, bytes, set) == 0;
    const bool tooSmall = !known && errno == EINVAL;
    std::vector<uint64_t> words;
    for (size_t core = 0; known && core < cores; ++core) {
      if (!CPU_ISSET_S(core, bytes, set)) continue;
      words.resize(core / 64 + 1);
      words[core / 64] |= uint64_t{1} << core % 64;
    }
    CPU_FREE(set);
    if (!tooSmall) return words;
  }
  return {};
}

void* allocateHost(size_t bytes) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  if (bytes > SIZE_MAX - page)
    throw Error(Code::InvalidArgument, concat("cannot allocate ", bytes, " bytes"));
  const size_t rounded = (bytes + page - 1) / page * page;
  void* const memory = ::mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throwSystemError(concat("cannot allocate ", bytes, " bytes"), errno);
  const std::scoped_lock lock(allocations().mutex);
  allocations().bytes[memory] = rounded;
  return memory;
}

void freeHost(void* memory) {
  const std::scoped_lock lock(allocations().mutex);
  const auto found = allocations().bytes.find(memory);
  if (found == allocations().bytes.end())
    throw Error(Code::InvalidArgument, concat("ptr is ", memory, ", which ncclMemAlloc did not return"));
  ::munmap(memory, found->second);
  allocations().bytes.erase(found);
}

}  // namespace topoccl
