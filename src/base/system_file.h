// Files of /proc, /sys and /etc, and such as a setting names.
#pragma once

#include <cstddef>
#include <string>

namespace topoccl {

// All of it; empty where it can't be read. No program that is started meanwhile inherits the descriptor.
std::string readSystemFile(const std::string& path);

// All of a regular file, of at most `most` bytes. Throws SystemError with the reason: nobody knows what a
// setting names, and a pipe or device may have no end.
std::string readNamedFile(const std::string& path, size_t most);

// Up to the first end of line.
std::string firstLineOf(const std::string& path);

}  // namespace topoccl
