#include "base/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/signals.h"
#include "base/system_file.h"

// Newer than some C libraries we build with.
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace topoccl {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

Descriptor makeFile(const std::string& name) {
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  Descriptor file(::memfd_create(name.c_str(), flags | MFD_NOEXEC_SEAL));
  // Kernels before 6.3 don't know the no-exec flag.
  if (!file && errno == EINVAL) file = Descriptor(::memfd_create(name.c_str(), flags));
  if (!file) throwSystemError("making a memory file (memfd_create)", errno);
  return file;
}

// What the system could give without killing anybody; SIZE_MAX where it does not say.
size_t availableBytes() {
  std::istringstream file(readSystemFile("/proc/meminfo"));
  file.imbue(std::locale::classic());
  size_t kibibytes = 0;
  bool known = false;
  for (std::string name, unit; file >> name;) {
    size_t value = 0;
    file >> value;
    std::getline(file, unit);
    if (name != "MemAvailable:" && name != "SwapFree:") continue;
    kibibytes += value;
    known = known || name == "MemAvailable:";
  }
  return known ? kibibytes * 1024 : SIZE_MAX;
}

}  // namespace

MemoryFile::MemoryFile(MemoryFile&& other) noexcept
    : file_(std::move(other.file_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

MemoryFile& MemoryFile::operator=(MemoryFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MemoryFile::~MemoryFile() {
  if (data_) ::munmap(data_, bytes_);
}

void MemoryFile::map(int flags) {
  void* address = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, flags, file_.get(), 0);
  if (address == MAP_FAILED) throwSystemError(concat("mapping ", bytes_, " bytes of memory"), errno);
  data_ = static_cast<std::byte*>(address);
}

MemoryFile MemoryFile::create(size_t bytes, const std::string& name) {
  MemoryFile memory = createSparse(bytes, name);
  memory.reserve(0, bytes);
  return memory;
}

MemoryFile MemoryFile::createSparse(size_t bytes, const std::string& name) {
  MemoryFile memory;
  memory.bytes_ = bytes;
  memory.file_ = makeFile(name);
  const WriteSignalsKept kept;
  if (::ftruncate(memory.file_.get(), static_cast<off_t>(bytes)) != 0)
    throwSystemError(concat("making a memory file of ", bytes, " bytes"), errno);
  if (::fcntl(memory.file_.get(), F_ADD_SEALS, kSizeSeals | F_SEAL_SEAL) != 0)
    throwSystemError("sealing a memory file (F_ADD_SEALS)", errno);
  memory.map(MAP_SHARED | MAP_NORESERVE);
  return memory;
}

void MemoryFile::reserve(size_t offset, size_t bytes) {
  if (!file_ || bytes == 0) return;
  // The file system behind memory files has no limit of its own: reserving more than there is would not fail
  // but call the out-of-memory killer. Hence the look before.
  const size_t available = availableBytes();
  if (bytes > available)
    throw Error(Code::SystemError,
                concat("reserving ", bytes, " bytes of shared memory: only ", available, " are available"));
  const WriteSignalsKept kept;
  int error;
  do
    error =
        ::fallocate(file_.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  while (error == EINTR);
  if (error != 0) throwSystemError(concat("reserving ", bytes, " bytes of shared memory"), error);
}

namespace {

struct flock lockOf(size_t byte) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(byte);
  lock.l_len = 1;
  return lock;
}

}  // namespace

void MemoryFile::lock(size_t byte) const {
  if (!file_) return;
  struct flock lock = lockOf(byte);
  if (::fcntl(file_.get(), F_SETLK, &lock) != 0)
    throwSystemError("locking a byte of a memory file, by which peers see that this process lives", errno);
}

bool MemoryFile::lockedElsewhere(size_t byte) const {
  if (!file_) return true;
  struct flock lock = lockOf(byte);
  if (::fcntl(file_.get(), F_GETLK, &lock) != 0)
    throwSystemError("asking for a lock of a memory file", errno);
  return lock.l_type != F_UNLCK;
}

MemoryFile MemoryFile::anonymous(size_t bytes) {
  MemoryFile memory;
  memory.bytes_ = bytes;
  memory.map(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
  return memory;
}

MemoryFile MemoryFile::adopt(Descriptor file, size_t bytes) {
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals)
    throw Error(Code::RemoteError, "a peer's memory file is not sealed against resizing");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throwSystemError("reading a memory file's size", errno);
  if (status.st_size < 0 || static_cast<size_t>(status.st_size) != bytes)
    throw Error(Code::RemoteError,
                concat("a peer's memory file has ", status.st_size, " bytes, not ", bytes));
  MemoryFile memory;
  memory.bytes_ = bytes;
  memory.file_ = std::move(file);
  memory.map(MAP_SHARED);
  return memory;
}

}  // namespace topoccl
