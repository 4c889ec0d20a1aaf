#include "communicator/split.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/crypto.h"
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

using Nonce = std::array<char, 16>;
constexpr size_t kSealedBytes = sizeof(Nonce) + sizeof(UniqueId::bytes);

// Messages between ranks are proved, not hidden, but an id is a secret of its holders.
std::string masked(const Member& parent, std::string_view nonce, std::string_view bytes) {
  const Bytes32 key = parent.deriveKey("ids of splits");
  std::string text(bytes);
  for (size_t i = 0; i < text.size(); i += sizeof(Bytes32)) {
    const Bytes32 mask = mac(key, {nonce, std::to_string(i)});
    for (size_t j = i; j < std::min(i + mask.size(), text.size()); ++j)
      text[j] = static_cast<char>(text[j] ^ mask[j - i]);
  }
  return text;
}

// In the id's place where that fails: why, in another size. The others wait for it.
std::string sealedIdOrReason(const Member& parent, std::optional<Error>& failure) {
  try {
    const UniqueId id = idWithRoot(parent.settings());
    const auto nonce = random<Nonce>();
    return concat(bytesOf(nonce), masked(parent, bytesOf(nonce), bytesOf(id.bytes)));
  } catch (const Error& error) {
    failure.emplace(error);
  } catch (const std::exception&) {
    failure.emplace(outOfMemoryError());
  }
  return std::string(failure->what()).substr(0, kSealedBytes - 1);
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
  const std::vector<std::string> ids = parent.allGather(leads ? sealedIdOrReason(parent, failure) : "");
  if (failure) throw Error(*failure);
  SplitPart mine;
  if (color == kNoColor) return mine;
  const std::string& sealed = ids[static_cast<size_t>(part.front().rank)];
  if (sealed.size() != kSealedBytes)
    throw Error(Code::RemoteError,
                concat("rank ", part.front().rank, " made no id for the split: ", printable(sealed)));
  const std::string_view nonce = std::string_view(sealed).substr(0, sizeof(Nonce));
  const std::string id = masked(parent, nonce, std::string_view(sealed).substr(sizeof(Nonce)));
  std::memcpy(mine.id.bytes.data(), id.data(), id.size());
  mine.meeting.members = hash64({id});
  for (const SplitWish& wish : part) {
    if (wish.rank == parent.rank()) mine.rank = static_cast<int>(mine.members.size());
    mine.members.push_back(wish.rank);
  }
  return mine;
}

}  // namespace topoccl
