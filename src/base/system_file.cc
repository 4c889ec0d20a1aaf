#include "base/system_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/descriptor.h"

namespace topoccl {

std::string readSystemFile(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return "";
  std::string text;
  for (char part[4096];;) {
    const ssize_t count = ::read(file.get(), part, sizeof(part));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 ? "" : text;
    text.append(part, static_cast<size_t>(count));
  }
}

std::string firstLineOf(const std::string& path) {
  const std::string text = readSystemFile(path);
  return text.substr(0, text.find('\n'));
}

}  // namespace topoccl
