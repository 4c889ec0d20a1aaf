// Numbers that keep columns straight.
#pragma once

#include <string>

namespace topoccl::bench {

// `value` >= 0 in `width` characters, with as many of two decimals as fit, then in scientific notation.
std::string fitNumber(double value, int width);

// Local time as "2024-05-06 07:08:09".
std::string timeOfDay();

// "1.5 GB", binary units.
std::string sizeWithUnit(double bytes);

}  // namespace topoccl::bench
