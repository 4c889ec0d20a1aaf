#include "common/number_text.h"

#include <cstdio>
#include <ctime>

namespace topoccl::bench {
namespace {

template <class... Values>
std::string format(const char* pattern, Values... values) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

}  // namespace

std::string fitNumber(double value, int width) {
  for (int decimals = 2; decimals >= 0; decimals--) {
    std::string text = format("%*.*f", width, decimals, value);
    if (text.size() <= static_cast<size_t>(width)) return text;
  }
  return format("%*.*e", width, width >= 7 ? 1 : 0, value);
}

std::string timeOfDay() {
  const std::time_t now = std::time(nullptr);
  std::tm fields{};
  localtime_r(&now, &fields);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &fields);
  return text;
}

std::string sizeWithUnit(double bytes) {
  constexpr const char* kUnits[] = {" B", " KB", " MB", " GB"};
  int unit = 0;
  for (; bytes >= 1024 && unit < 3; unit++) bytes /= 1024;
  return format("%.*f", bytes < 10 ? 2 : bytes < 100 ? 1 : 0, bytes) + kUnits[unit];
}

}  // namespace topoccl::bench
