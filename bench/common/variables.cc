#include "common/variables.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>

#include "common/failure.h"

namespace topoccl::bench {
namespace {

[[noreturn]] void reject(const char* name, const char* text, const std::string& allowed) {
  throw Failure(ExitCode::BadArguments,
                std::string(name) + "=\"" + text + "\" is not valid: must be " + allowed);
}

template <class Number>
bool parse(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

double numberVariable(const char* name, double fallback, double low, double high) {
  const char* text = std::getenv(name);
  if (text == nullptr) return fallback;
  double number = 0;
  if (!parse(text, number) || !(number >= low && number <= high)) {
    std::ostringstream allowed;
    allowed << "a number from " << low << " to " << high;
    reject(name, text, allowed.str());
  }
  return number;
}

std::vector<uint64_t> numbersVariable(const char* name, const char* form) {
  const char* text = std::getenv(name);
  if (text == nullptr) return {};
  const std::string_view words = form;
  std::vector<uint64_t> numbers;
  for (std::string_view rest = text;;) {
    const size_t colon = rest.find(':');
    if (!parse(rest.substr(0, colon), numbers.emplace_back())) reject(name, text, form);
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  const auto colons = std::count(words.begin(), words.end(), ':');
  if (numbers.size() != static_cast<size_t>(colons) + 1) reject(name, text, form);
  return numbers;
}

}  // namespace topoccl::bench
