#include "common/size_text.h"

#include <cctype>
#include <cstdlib>

namespace topoccl::bench {
namespace {

double unitBytes(char letter) {
  switch (std::toupper(static_cast<unsigned char>(letter))) {
    case '\0':
      return 1;
    case 'K':
      return 1024.0;
    case 'M':
      return 1024.0 * 1024.0;
    case 'G':
      return 1024.0 * 1024.0 * 1024.0;
    default:
      return 0;
  }
}

}  // namespace

std::optional<uint64_t> parseSize(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return std::nullopt;
  while (std::isspace(static_cast<unsigned char>(*end)) != 0) end++;
  const double bytes = number * unitBytes(*end);
  const bool isSize = unitBytes(*end) != 0 && bytes >= 0 && bytes < 0x1p63;
  if (!isSize) return std::nullopt;
  return static_cast<uint64_t>(bytes);
}

}  // namespace topoccl::bench
