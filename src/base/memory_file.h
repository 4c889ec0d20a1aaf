// Memory that processes of one node share: an unnamed file passed by descriptor, mapped at both ends. Nothing
// appears in /dev/shm, nothing outlives the last process. The file's memory is reserved at once, so that lack
// of it is an error here and not a SIGBUS later; its size is sealed, so that no peer can shrink it under us.
#pragma once

#include <cstddef>
#include <string>

#include "base/descriptor.h"

namespace topoccl {

// Owns the mapping and, where it is shared, the descriptor. An empty object has no data.
class MemoryFile {
 public:
  MemoryFile() = default;
  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&& other) noexcept;
  ~MemoryFile();

  // A zeroed file of `bytes` (> 0). `name` shows in /proc/PID/maps. Throws SystemError that names the size.
  static MemoryFile create(size_t bytes, const std::string& name);

  // The same, but nothing is reserved: reserve() a range before its first use.
  static MemoryFile createSparse(size_t bytes, const std::string& name);

  // Makes sure that there is memory behind [offset, offset + bytes). Throws SystemError that names the size.
  void reserve(size_t offset, size_t bytes);

  // Zeroed memory that only this process sees; descriptor() is -1.
  static MemoryFile anonymous(size_t bytes);

  // Maps what a peer sent. Throws RemoteError unless it is a memory file of exactly `bytes` whose size is
  // sealed.
  static MemoryFile adopt(Descriptor file, size_t bytes);

  // Locks a byte of the file for this process, until that ends or lets the file go: a sign of life that takes
  // no messages, and that children do not inherit. Does nothing where there is no file. Throws SystemError.
  void lock(size_t byte) const;
  // Whether another process has locked that byte; true where there is no file.
  bool lockedElsewhere(size_t byte) const;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  int descriptor() const { return file_.get(); }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  void map(int flags);

  Descriptor file_;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace topoccl
