// What a rank tells its communicator's others when it is split (split.h).
#pragma once

#include <string>

namespace topoccl {

struct SplitWish {
  int color;
  int key;
  int rank;
};

std::string encodeWish(int color, int key);

// Takes any bytes. Throws, naming `rank`, who sent them: InternalError where they are no wish,
// InvalidArgument where the colour is none.
SplitWish decodeWish(const std::string& bytes, int rank);

}  // namespace topoccl
