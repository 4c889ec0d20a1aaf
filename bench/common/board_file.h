// The board of ranks that a launcher started: a private file where rank 0 makes it and the others find it,
// by a name that only ranks of the same job and user derive. It has no name any more once all have come.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "common/memory_map.h"

namespace topoccl::bench {

struct BoardFileRequest {
  std::string directory;  // must be writable by this user; boardDirectory()
  std::string jobKey;
  int rank = 0;
  int ranks = 1;
  size_t bytes = 0;  // of the board
  std::chrono::milliseconds patience{60'000};
  std::chrono::milliseconds silence{5'000};  // then a line on stderr says who is waited for
};

// XDG_RUNTIME_DIR if it is a directory of ours, else /tmp.
std::string boardDirectory();

// Returns when all ranks have the file mapped; the map is zeroed. The file is created exclusively with mode
// 0600 and never followed through a link; readers accept only a file of their own user whose maker is alive.
// Throws Failure when a rank does not come in time, comes twice, or another job holds the same name.
class BoardFile {
 public:
  explicit BoardFile(const BoardFileRequest& request);
  void* board() const;

 private:
  MemoryMap map_;
};

// For tests: where the file of a request lies while ranks are coming.
std::string boardPath(const BoardFileRequest& request);

}  // namespace topoccl::bench
