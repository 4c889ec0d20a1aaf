#include "communicator/split.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/messages.h"
#include "communicator/member.h"
#include "communicator/split_wish.h"

namespace topoccl {

namespace {

// The ranks of one colour in their new order.
std::vector<SplitWish> partOf(const std::vector<std::string>& wishes, int color) {
  std::vector<SplitWish> part;
  for (size_t rank = 0; rank < wishes.size(); ++rank) {
    const SplitWish wish = decodeWish(wishes[rank], static_cast<int>(rank));
    if (wish.color == color) part.push_back(wish);
  }
  std::sort(part.begin(), part.end(), [](const SplitWish& a, const SplitWish& b) {
    return std::tie(a.key, a.rank) < std::tie(b.key, b.rank);
  });
  return part;
}

// In its place where that fails: why, in another size than an id's. The others wait for it.
std::string idOrReason(const Settings& settings, std::optional<Error>& failure) {
  try {
    const UniqueId id = idWithRoot(settings);
    return {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()};
  } catch (const Error& error) {
    failure.emplace(error);
    return concat(error.what()).substr(0, UniqueId{}.bytes.size() - 1);
  }
}

}  // namespace

UniqueId idWithRoot(Settings settings) {
  settings.commId.clear();
  return getUniqueId(settings);
}

SplitPart joinSplit(Member& parent, int color, int key) {
  const std::vector<SplitWish> part = partOf(parent.allGather(encodeWish(color, key)), color);
  const bool leads = color != kNoColor && part.front().rank == parent.rank();
  std::optional<Error> failure;
  const std::vector<std::string> ids = parent.allGather(leads ? idOrReason(parent.settings(), failure) : "");
  if (failure) throw Error(*failure);
  SplitPart mine;
  if (color == kNoColor) return mine;
  const std::string& id = ids[static_cast<size_t>(part.front().rank)];
  if (id.size() != mine.id.bytes.size())
    throw Error(Code::RemoteError,
                concat("rank ", part.front().rank, " made no id for the split: ", printable(id)));
  std::memcpy(mine.id.bytes.data(), id.data(), id.size());
  for (const SplitWish& wish : part) {
    if (wish.rank == parent.rank()) mine.rank = static_cast<int>(mine.members.size());
    mine.members.push_back(wish.rank);
  }
  return mine;
}

}  // namespace topoccl
