// Numbers in environment variables.
#pragma once

#include <cstdint>
#include <vector>

namespace topoccl::bench {

// `fallback` where it is unset. Throws BadArguments for what is no number from `low` to `high`.
double numberVariable(const char* name, double fallback, double low, double high);

// Whole numbers >= 0 between colons, one per word of `form` ("RANK:ELEMENT:BIT"); empty where it is unset.
// Throws BadArguments for anything else.
std::vector<uint64_t> numbersVariable(const char* name, const char* form);

}  // namespace topoccl::bench
