// What happens to the library when its process forks.
//
// A child has one thread, copies of locks that other threads held, and copies of its parent's descriptors. So
// the locks that a process has once are taken before a fork and let go on both sides after it: what they
// guard is whole in the child too. The child closes the descriptors (descriptor.h). Everything with threads,
// connections or shared memory belongs to the process that made it: whoever has such a thing notes the
// processGeneration(), and refuses it in another one without touching it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <mutex>
#include <string>

namespace topoccl {

// Another number in a child than in its parent, and in that one's parents. As cheap as a variable.
uint32_t processGeneration() noexcept;

// Throws InvalidUsage: `what` is of process `maker`, which forked this one. `advice` says what to do.
[[noreturn]] void refuseAfterFork(const std::string& what, pid_t maker, const std::string& advice);

// Takes part in forks; a constant at namespace scope, so that it is there before any thread.
class ForkHook {
 public:
  using Function = void (*)();

  // Hooks prepare in this order. No lock is held while one of an earlier level, or of its own, is taken.
  enum class Level : uint8_t { First, Outer, Middle, Inner };

  // `prepare` runs before a fork, `release` after it in the parent and in the child, `renew` in the child
  // before that. None may throw; the last two may be nullptr.
  ForkHook(Level level, Function prepare, Function release, Function renew) noexcept;
  ForkHook(const ForkHook&) = delete;
  ForkHook& operator=(const ForkHook&) = delete;

  // Holds a mutex of the process, which `mutex` makes on its first use.
  template <std::mutex& (*mutex)()>
  static ForkHook holding(Level level, Function renew = nullptr) noexcept {
    return {level, [] { mutex().lock(); }, [] { mutex().unlock(); }, renew};
  }

  // Makes something that is made on first use: no child finds it half made. May throw.
  explicit ForkHook(Function make) noexcept : ForkHook(Level::First, make, nullptr, nullptr) {}

 private:
  static void enlist(ForkHook& hook) noexcept;
  static void makeAll();
  static void prepareAll();
  static void releaseAll();
  static void renewAll();

  Level level_;
  Function prepare_, release_, renew_;
  ForkHook* next_ = nullptr;
};

}  // namespace topoccl
