#include "support/allocations.h"

#include <cstdlib>
#include <new>
#include <utility>

namespace topoccl::test {

namespace {
constexpr uint64_t kNever = 0;
thread_local uint64_t allocations = 0;
thread_local uint64_t failing = kNever;  // the number of the allocation that fails
}  // namespace

uint64_t allocationsOfThisThread() {
  return allocations;
}

void failAllocationAfter(uint64_t others) {
  failing = allocations + others + 1;
}

bool hasFailedAnAllocation() {
  return allocations >= std::exchange(failing, kNever);
}

namespace {

void* counted(size_t bytes, size_t alignment) {
  if (++allocations == failing) throw std::bad_alloc();
  void* memory = nullptr;
  if (::posix_memalign(&memory, alignment < sizeof(void*) ? sizeof(void*) : alignment, bytes) != 0)
    throw std::bad_alloc();
  return memory;
}

}  // namespace

}  // namespace topoccl::test

using topoccl::test::counted;

void* operator new(size_t bytes) {
  return counted(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
