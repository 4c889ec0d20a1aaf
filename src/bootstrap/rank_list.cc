#include "bootstrap/rank_list.h"

#include "base/error.h"

namespace topoccl {

std::string rankList(const std::vector<int>& ranks) {
  constexpr size_t kShown = 16;
  const size_t count = ranks.size();
  if (count == 0) return "no rank";
  std::string text = count == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < count && i < kShown; ++i) {
    if (i > 0) text += i + 1 == count ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  if (count > kShown) text += concat(" and ", count - kShown, " more");
  return text;
}

std::string secondsText(long long milliseconds) {
  return concat(static_cast<double>(milliseconds) / 1000, " s");
}

std::string initTimeoutText(long long milliseconds) {
  constexpr long long kUnit = 100;
  const bool rounds = milliseconds >= 10 * kUnit;
  return secondsText(rounds ? (milliseconds + kUnit / 2) / kUnit * kUnit : milliseconds) +
         " (TOPOCCL_INIT_TIMEOUT)";
}

}  // namespace topoccl
