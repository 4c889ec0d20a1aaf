#include "communicator/split_wish.h"

#include <cstdint>

#include "base/bytes.h"
#include "base/error.h"
#include "communicator/split.h"

namespace topoccl {

std::string encodeWish(int color, int key) {
  return ByteWriter().number(static_cast<uint32_t>(color)).number(static_cast<uint32_t>(key)).take();
}

SplitWish decodeWish(const std::string& bytes, int rank) {
  ByteReader reader(bytes);
  const auto color = static_cast<int>(reader.number<uint32_t>());
  const auto key = static_cast<int>(reader.number<uint32_t>());
  if (!reader.done())
    throw Error(Code::InternalError, concat("rank ", rank, " sent ", bytes.size(), " bytes for a split"));
  if (color < kNoColor)
    throw Error(Code::InvalidArgument, concat("color of rank ", rank, " is ", color,
                                              "; it must be at least 0, or -1 (NCCL_SPLIT_NOCOLOR)"));
  return {color, key, rank};
}

}  // namespace topoccl
