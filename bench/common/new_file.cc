#include "common/new_file.h"

#include <cerrno>
#include <cstring>

#include "common/failure.h"

namespace topoccl::bench {

std::FILE* createNewFile(const std::string& wanted, const char* kind) {
  std::string path = wanted;
  std::FILE* file = nullptr;
  for (int attempt = 0; (file = std::fopen(path.c_str(), "wxe")) == nullptr && errno == EEXIST; attempt++) {
    path = wanted + "." + std::to_string(attempt);
  }
  if (file == nullptr)
    throw Failure(ExitCode::BadArguments, "cannot create " + path + ": " + std::strerror(errno));
  std::printf("# Writing %s output to %s\n", kind, path.c_str());
  return file;
}

}  // namespace topoccl::bench
