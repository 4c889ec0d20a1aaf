#include "communicator/split.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "bootstrap/bootstrap.h"
#include "communicator/member.h"

namespace topoccl {

namespace {

struct Wish {
  int color;
  int key;
  int rank;
};

std::string encode(int color, int key) {
  return ByteWriter().number(static_cast<uint32_t>(color)).number(static_cast<uint32_t>(key)).take();
}

Wish decode(const std::string& bytes, int rank) {
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

// The ranks of one colour in their new order.
std::vector<Wish> partOf(const std::vector<std::string>& wishes, int color) {
  std::vector<Wish> part;
  for (size_t rank = 0; rank < wishes.size(); ++rank) {
    const Wish wish = decode(wishes[rank], static_cast<int>(rank));
    if (wish.color == color) part.push_back(wish);
  }
  std::sort(part.begin(), part.end(),
            [](const Wish& a, const Wish& b) { return std::tie(a.key, a.rank) < std::tie(b.key, b.rank); });
  return part;
}

// A root of its own, also where the parent met at NCCL_COMM_ID.
std::string makeId(Settings settings) {
  settings.commId.clear();
  const UniqueId id = getUniqueId(settings);
  return {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()};
}

// In its place where that fails: why, in another size than an id's. The others wait for it.
std::string idOrReason(const Settings& settings, std::optional<Error>& failure) {
  try {
    return makeId(settings);
  } catch (const Error& error) {
    failure.emplace(error);
    return concat(error.what()).substr(0, UniqueId{}.bytes.size() - 1);
  }
}

}  // namespace

SplitPart joinSplit(Member& parent, int color, int key) {
  const std::vector<Wish> part = partOf(parent.allGather(encode(color, key)), color);
  const bool leads = color != kNoColor && part.front().rank == parent.rank();
  std::optional<Error> failure;
  const std::vector<std::string> ids = parent.allGather(leads ? idOrReason(parent.settings(), failure) : "");
  if (failure) throw Error(*failure);
  SplitPart mine;
  if (color == kNoColor) return mine;
  const std::string& id = ids[static_cast<size_t>(part.front().rank)];
  if (id.size() != mine.id.bytes.size())
    throw Error(Code::RemoteError, concat("rank ", part.front().rank, " made no id for the split: ", id));
  std::memcpy(mine.id.bytes.data(), id.data(), id.size());
  mine.ranks = static_cast<int>(part.size());
  mine.rank = static_cast<int>(
      std::find_if(part.begin(), part.end(), [&](const Wish& wish) { return wish.rank == parent.rank(); }) -
      part.begin());
  return mine;
}

}  // namespace topoccl
