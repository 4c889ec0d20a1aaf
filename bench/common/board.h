// Shared memory through which the drivers of a bench (its processes' threads) control each other: a barrier,
// an all-gather of small values, and a flag that says someone failed. It works without the library under
// test, so that a wrong collective can't spoil its own measurement.
//
// The memory lies in an anonymous memory file inherited by local processes (local_processes.h), in a private
// file for ranks of a launcher (board_file.h), or in ordinary memory for threads of one process.
//
// Atomics here are default (sequentially consistent): the board is control, not data path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace topoccl::bench {

class Board {
 public:
  static constexpr size_t kCellBytes = 1024;
  static size_t bytesNeeded(int drivers);

  // `memory`: bytesNeeded(drivers), zeroed before the first driver comes, aligned to 64, mapped by all.
  // One Board object per driver; not thread-safe.
  Board(void* memory, int drivers, int driver);

  int drivers() const { return drivers_; }
  int driver() const { return driver_; }

  // Returns when all drivers are here. Throws Failure if some driver called fail().
  void barrier();

  // Everybody's `mine`, by driver. All drivers call it with the same type.
  template <class T>
  std::vector<T> gather(const T& mine) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kCellBytes);
    std::memcpy(cell(driver_), &mine, sizeof mine);
    barrier();
    std::vector<T> all(static_cast<size_t>(drivers_));
    for (int i = 0; i < drivers_; i++) std::memcpy(&all[static_cast<size_t>(i)], cell(i), sizeof mine);
    barrier();
    return all;
  }

  // Ends every present and future barrier of all drivers with a Failure.
  void fail() noexcept;
  bool failed() const;

 private:
  struct Head;
  void checkFailed() const;
  void awaitAfter(uint32_t generation) const;
  std::byte* cell(int driver) const;

  Head* head_;
  int drivers_;
  int driver_;
};

}  // namespace topoccl::bench
