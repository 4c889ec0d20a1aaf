#include "base/system_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/descriptor.h"
#include "base/error.h"

namespace topoccl {

namespace {

// Up to more than `most` bytes; false, and errno, where reading fails.
bool readAll(int file, size_t most, std::string& text) {
  for (char part[4096]; text.size() <= most;) {
    const ssize_t count = ::read(file, part, sizeof(part));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count == 0;
    text.append(part, static_cast<size_t>(count));
  }
  return true;
}

}  // namespace

std::string readSystemFile(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  return file && readAll(file.get(), SIZE_MAX - 1, text) ? text : "";
}

std::string readNamedFile(const std::string& path, size_t most) {
  // Opening a pipe would wait for its other end.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  if (!file || ::fstat(file.get(), &about) != 0) throwSystemError(path, errno);
  if (!S_ISREG(about.st_mode)) throw Error(Code::SystemError, path + ": it is no regular file");
  std::string text;
  if (!readAll(file.get(), most, text)) throwSystemError(path, errno);
  if (text.size() > most) throw Error(Code::SystemError, concat(path, ": it has more than ", most, " bytes"));
  return text;
}

std::string firstLineOf(const std::string& path) {
  const std::string text = readSystemFile(path);
  return text.substr(0, text.find('\n'));
}

}  // namespace topoccl
