// Files of /proc, /sys and /etc.
#pragma once

#include <string>

namespace topoccl {

// All of it; empty where it can't be read. No program that is started meanwhile inherits the descriptor.
std::string readSystemFile(const std::string& path);

// Up to the first end of line.
std::string firstLineOf(const std::string& path);

}  // namespace topoccl
