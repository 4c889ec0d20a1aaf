// Owns a file descriptor. Everything in this library opens descriptors close-on-exec, and none of them takes
// the place of standard input, output or error where the program has closed these.
//
// A fork's child closes its copies before the fork returns there: a peer would not see the end of a parent
// whose connections live on in a child. What still names them in the child closes nothing.
#pragma once

#include <utility>

namespace topoccl {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) noexcept;
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() { reset(); }

  int get() const { return value_; }
  explicit operator bool() const { return value_ >= 0; }

  // Gives it up: open for good, in children too.
  int release() noexcept;

  // Closes. Leaves errno alone.
  void reset() noexcept;

 private:
  static int aboveStandard(int value) noexcept;

  int value_ = -1;
};

}  // namespace topoccl
