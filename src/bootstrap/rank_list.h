// Lists of ranks in messages.
#pragma once

#include <string>
#include <vector>

namespace topoccl {

// "rank 3", "ranks 1, 2 and 5", or the first 16 "and 240 more".
std::string rankList(const std::vector<int>& ranks);

// "2.5 s" from milliseconds.
std::string secondsText(long long milliseconds);
// The same of what was left of init's time when a rank came, and the setting it comes from.
std::string initTimeoutText(long long milliseconds);

}  // namespace topoccl
