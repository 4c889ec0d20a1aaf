// Runs a fuzz target on files and on the files of folders: what is kept of earlier findings stays mended,
// under every compiler and sanitizer.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <vector>

#include "fuzz.h"

namespace {

namespace files = std::filesystem;

std::vector<files::path> inputsAt(const files::path& path) {
  if (!files::is_directory(path)) return {path};
  std::vector<files::path> found;
  for (const auto& entry : files::recursive_directory_iterator(path))
    if (entry.is_regular_file()) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

void replay(const files::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  // Said before it runs: it may end the program.
  std::cout << path.string() << ", " << bytes.size() << " bytes" << std::endl;
  // A block of exactly that size: a sanitizer sees what is read beyond it.
  const std::unique_ptr<uint8_t[]> input(new uint8_t[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), input.get());
  LLVMFuzzerTestOneInput(input.get(), bytes.size());
}

}  // namespace

int main(int count, char** arguments) {
  size_t inputs = 0;
  for (int i = 1; i < count; ++i)
    for (const files::path& path : inputsAt(arguments[i])) {
      replay(path);
      ++inputs;
    }
  std::cout << inputs << " inputs" << std::endl;
  if (inputs == 0) std::cerr << "usage: " << arguments[0] << " FILE-OR-FOLDER...\n";
  return inputs == 0 ? 2 : 0;
}
