// Files of reports, which never replace what is there.
#pragma once

#include <cstdio>
#include <string>

namespace topoccl::bench {

// Creates `wanted`, or wanted.0, wanted.1, ... if that exists, and says so on stdout, naming `kind` ("JSON").
// Throws Failure with BadArguments if it can't be made.
std::FILE* createNewFile(const std::string& wanted, const char* kind);

}  // namespace topoccl::bench
