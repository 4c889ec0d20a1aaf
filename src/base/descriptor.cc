#include "base/descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/fork_safety.h"

namespace topoccl {
namespace {

// What the library has open in this process, as bits; higher numbers stay open in children.
class OpenDescriptors {
 public:
  static OpenDescriptors& instance() {
    static constinit OpenDescriptors all;
    return all;
  }
  static std::mutex& mutex() { return instance().mutex_; }

  void add(int number) {
    const std::scoped_lock lock(mutex_);
    if (known(number)) words_[word(number)] |= bit(number);
  }

  bool remove(int number) {
    const std::scoped_lock lock(mutex_);
    return take(number);
  }

  void close(int number) {
    const std::scoped_lock lock(mutex_);
    // Linux has released the number even when close reports EINTR: closing again could hit somebody else's.
    if (take(number)) ::close(number);
  }

  void closeAll() {
    for (size_t i = 0; i < kWords; ++i)
      for (; words_[i] != 0; words_[i] &= words_[i] - 1)
        ::close(static_cast<int>(i * 64) + std::countr_zero(words_[i]));
  }

 private:
  static constexpr size_t kWords = 1024;

  static size_t word(int number) { return static_cast<size_t>(number) / 64; }
  static uint64_t bit(int number) { return uint64_t{1} << number % 64; }
  static bool known(int number) { return word(number) < kWords; }

  // False where it is not ours.
  bool take(int number) {
    if (!known(number)) return true;
    uint64_t& bits = words_[word(number)];
    const bool ours = (bits & bit(number)) != 0;
    bits &= ~bit(number);
    return ours;
  }

  std::mutex mutex_;
  std::array<uint64_t, kWords> words_{};
};

const ForkHook kHook = ForkHook::holding<OpenDescriptors::mutex>(
    ForkHook::Level::Inner, [] { OpenDescriptors::instance().closeAll(); });

}  // namespace

Descriptor::Descriptor(int value) noexcept : value_(aboveStandard(value)) {
  const int error = errno;
  if (value_ >= 0) OpenDescriptors::instance().add(value_);
  errno = error;
}

int Descriptor::aboveStandard(int value) noexcept {
  if (value < 0 || value > STDERR_FILENO) return value;
  const int moved = ::fcntl(value, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(value);
  errno = error;
  return moved;
}

int Descriptor::release() noexcept {
  if (value_ >= 0) OpenDescriptors::instance().remove(value_);
  return std::exchange(value_, -1);
}

void Descriptor::reset() noexcept {
  if (value_ < 0) return;
  const int saved = errno;
  OpenDescriptors::instance().close(std::exchange(value_, -1));
  errno = saved;
}

}  // namespace topoccl
