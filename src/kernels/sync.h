// Memory order in one place: the loads, stores and fences that threads, processes and kernels use to talk to
// each other. Plain integers in shared memory, accessed only through these functions, because the same bytes
// are mapped by several processes and by GPUs.
//
// Who pairs with whom is written where the functions are used (slot_ring.h, doorbell.h). On devices every
// access has system scope: the other side may be a host thread or another GPU.
#pragma once

#include <cstdint>

#include "base/portable.h"

#if defined(__CUDACC__)
#include <cuda/atomic>
#endif

#if defined(__SANITIZE_THREAD__)
#define TOPOCCL_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TOPOCCL_THREAD_SANITIZER 1
#endif
#endif

namespace topoccl {

template <class T>
TOPOCCL_HOST_DEVICE inline T loadAcquire(const T* address) {
#if defined(__CUDA_ARCH__)
  return cuda::atomic_ref<T, cuda::thread_scope_system>(*const_cast<T*>(address))
      .load(cuda::memory_order_acquire);
#else
  return __atomic_load_n(address, __ATOMIC_ACQUIRE);
#endif
}

template <class T>
TOPOCCL_HOST_DEVICE inline T loadRelaxed(const T* address) {
#if defined(__CUDA_ARCH__)
  return cuda::atomic_ref<T, cuda::thread_scope_system>(*const_cast<T*>(address))
      .load(cuda::memory_order_relaxed);
#else
  return __atomic_load_n(address, __ATOMIC_RELAXED);
#endif
}

template <class T>
TOPOCCL_HOST_DEVICE inline void storeRelease(T* address, T value) {
#if defined(__CUDA_ARCH__)
  cuda::atomic_ref<T, cuda::thread_scope_system>(*address).store(value, cuda::memory_order_release);
#else
  __atomic_store_n(address, value, __ATOMIC_RELEASE);
#endif
}

template <class T>
TOPOCCL_HOST_DEVICE inline void storeRelaxed(T* address, T value) {
#if defined(__CUDA_ARCH__)
  cuda::atomic_ref<T, cuda::thread_scope_system>(*address).store(value, cuda::memory_order_relaxed);
#else
  __atomic_store_n(address, value, __ATOMIC_RELAXED);
#endif
}

// Orders every access before it against every access after it, stores against later loads included.
TOPOCCL_HOST_DEVICE inline void fullFence() {
#if defined(__CUDA_ARCH__)
  __threadfence_system();
#elif defined(TOPOCCL_THREAD_SANITIZER)
  // The thread sanitizer knows no fences; a read-modify-write is one on every host it runs on.
  uint32_t here = 0;
  __atomic_fetch_add(&here, 1U, __ATOMIC_SEQ_CST);
#else
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

// Orders non-temporal stores before later stores: a release store alone does not on x86.
TOPOCCL_HOST_DEVICE inline void streamFence() {
#if defined(__x86_64__) && !defined(__CUDA_ARCH__)
  __builtin_ia32_sfence();
#endif
}

// Asks for a cache line that will be written soon, so that the store finds it there.
TOPOCCL_HOST_DEVICE inline void prefetchForWrite([[maybe_unused]] const void* address) {
#if defined(__x86_64__) && !defined(__CUDA_ARCH__)
  __asm__ __volatile__("prefetchw (%0)" : : "r"(address));
#endif
}

// Host side only from here on.

// Adds and returns the old value, sequentially consistent; no fence for other accesses.
template <class T>
inline T fetchAdd(T* address, T value) {
  return __atomic_fetch_add(address, value, __ATOMIC_SEQ_CST);
}

// Sets *address to `desired` if it is `expected`; returns whether it did. Sequentially consistent.
template <class T>
inline bool compareExchange(T* address, T expected, T desired) {
  return __atomic_compare_exchange_n(address, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

// Returns the old value, sequentially consistent.
template <class T>
inline T exchange(T* address, T value) {
  return __atomic_exchange_n(address, value, __ATOMIC_SEQ_CST);
}

// Tells the core that this is a spin loop.
inline void relaxCore() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

}  // namespace topoccl
