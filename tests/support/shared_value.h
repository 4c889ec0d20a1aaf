// Memory that parent and children of a test see.
#pragma once

#include <sys/mman.h>

#include <new>

namespace topoccl::test {

template <class T>
class SharedValue {
 public:
  SharedValue()
      : value_(new (::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                   T()) {}
  ~SharedValue() { ::munmap(value_, sizeof(T)); }
  SharedValue(const SharedValue&) = delete;
  SharedValue& operator=(const SharedValue&) = delete;
  T* operator->() { return value_; }
  T& operator*() { return *value_; }

 private:
  T* value_;
};

}  // namespace topoccl::test
