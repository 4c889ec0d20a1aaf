// Rules of buffers and groups, for every call and every size of element: nothing outside a buffer is read or
// written, what a rank does not need is not looked at, what is sent stays as it was.
#include <cstring>
#include <deque>
#include <optional>

#include "communicator/movements.h"
#include "communicator/ranks.h"
#include "kernels/guarded.h"

namespace topoccl::test {
namespace {

struct Element {
  ncclDataType_t type;
  size_t bytes;
};
constexpr Element kElements[] = {{ncclUint8, 1}, {ncclFloat16, 2}, {ncclUint32, 4}, {ncclUint64, 8}};

// Element `index` of what a rank sends, as bits. Maximum reduces: it is exact and, of positive numbers, that
// of the bits.
uint64_t bitsOf(int rank, size_t index, const Element& element) {
  uint64_t bits = (static_cast<uint64_t>(rank) << 40 ^ index) * 0x9e3779b97f4a7c15 + 0x6a09e667f3bcc909;
  bits = (bits ^ bits >> 31) * 0xbf58476d1ce4e5b9;
  bits ^= bits >> 29;
  if (element.bytes == 2) return bits & 0x7bff;  // finite
  return element.bytes == 8 ? bits : bits & ((uint64_t{1} << element.bytes * 8) - 1);
}

uint64_t bitsFrom(const Origin& origin, int ranks, const Element& element) {
  if (origin.rank != Origin::kAll) return bitsOf(origin.rank, origin.index, element);
  uint64_t largest = 0;
  for (int rank = 0; rank < ranks; ++rank) largest = std::max(largest, bitsOf(rank, origin.index, element));
  return largest;
}

// Bytes that lie `gap` bytes beside a page that faults. The gap is part of the image.
class Fenced {
 public:
  Fenced(size_t bytes, Guarded::Side side, size_t gap)
      : pages_(bytes + gap, side), size_(bytes + gap), skip_(side == Guarded::Side::Front ? gap : 0) {
    if (size_ != 0) std::memset(pages_.data(), 0xa7, size_);
  }

  unsigned char* begin() const { return pages_.data() + skip_; }
  std::vector<unsigned char> image() const { return {pages_.data(), pages_.data() + size_}; }
  size_t offsetOf(const unsigned char* address) const { return static_cast<size_t>(address - pages_.data()); }

 private:
  Guarded pages_;
  size_t size_, skip_;
};

// `gap` unaligns the buffers, too.
struct Form {
  Movement movement;
  Element element;
  size_t count;
  Guarded::Side side;
  size_t gap;
  bool inPlace;
};

std::string textOf(const Form& form, const Site& site) {
  return std::string(nameOf(form.movement)) + " rank " + std::to_string(site.rank) + " of " +
         std::to_string(site.ranks) + " root " + std::to_string(site.root) + " count " +
         std::to_string(form.count) + " of " + std::to_string(form.element.bytes) + " bytes, gap " +
         std::to_string(form.gap) + (form.side == Guarded::Side::Front ? " in front" : " behind") +
         (form.inPlace ? " in place" : "");
}

// A buffer that the rank does not need is a page that faults; in place it is the other buffer, as programs
// write it that pass the same pointers on all ranks.
void expectForm(const Form& form, const Site& site, ncclComm_t comm) {
  const Element& element = form.element;
  const size_t block = form.count * element.bytes;
  const size_t sends = sendBlocks(form.movement, site) * block;
  const size_t receives = receiveBlocks(form.movement, site) * block;
  const Fenced first(form.inPlace ? std::max(sends, receives) : sends, form.side, form.gap);
  const Fenced second(form.inPlace ? 0 : receives, form.side, form.gap);
  const size_t own = static_cast<size_t>(site.rank) * block;
  const bool narrowSend = form.inPlace && sends != 0 && sends < receives;
  const bool narrowReceive = form.inPlace && receives != 0 && receives < sends;
  unsigned char* const send = first.begin() + (narrowSend ? own : 0);
  unsigned char* const receive = (form.inPlace ? first : second).begin() + (narrowReceive ? own : 0);
  for (size_t i = 0; i < sends / element.bytes; ++i) {
    const uint64_t bits = bitsOf(site.rank, i, element);
    std::memcpy(send + i * element.bytes, &bits, element.bytes);
  }

  std::vector<unsigned char> images[] = {first.image(), second.image()};
  std::vector<unsigned char>& received = images[form.inPlace ? 0 : 1];
  const size_t at = (form.inPlace ? first : second).offsetOf(receive);
  for (size_t i = 0; i < receives / element.bytes; ++i) {
    const uint64_t bits = bitsFrom(originOf(form.movement, site, form.count, i), site.ranks, element);
    std::memcpy(&received[at + i * element.bytes], &bits, element.bytes);
  }

  Arguments arguments;
  arguments.send = send;
  arguments.receive = receive;
  arguments.count = form.count;
  arguments.type = element.type;
  arguments.op = ncclMax;
  arguments.comm = comm;
  ASSERT_EQ(invoke(form.movement, site, arguments), ncclSuccess) << ncclGetLastError(nullptr);
  EXPECT_TRUE(first.image() == images[0]) << textOf(form, site) << ": first buffer";
  EXPECT_TRUE(second.image() == images[1]) << textOf(form, site) << ": second buffer";
}

bool reduced() {
  return std::getenv("TOPOCCL_TEST_REDUCED") != nullptr;
}

void expectAllForms(Movement movement, ncclComm_t comm, int ranks, int rank, bool few) {
  static const std::vector<size_t> kAllCounts = {0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 1000, 4099};
  static const std::vector<size_t> kFewCounts = {1, 17, 1000, 4099};
  static constexpr size_t kGaps[] = {0, 1, 3};
  size_t turn = 0;
  for (const Element& element : kElements)
    for (const size_t count : few || reduced() ? kFewCounts : kAllCounts)
      for (const Guarded::Side side : {Guarded::Side::Front, Guarded::Side::Back})
        for (const bool inPlace : {false, true}) {
          if (inPlace && !hasInPlace(movement)) continue;
          const size_t gap = kGaps[turn % std::size(kGaps)];
          const size_t root = turn++ / std::size(kGaps) % static_cast<size_t>(ranks);
          const Site site{ranks, rank, hasRoot(movement) ? static_cast<int>(root) : -1};
          expectForm({movement, element, count, side, gap, inPlace}, site, comm);
          if (testing::Test::HasFailure()) return;
        }
}

class Rules : public testing::TestWithParam<Movement> {};
INSTANTIATE_TEST_SUITE_P(All, Rules, testing::ValuesIn(kMovements),
                         [](const auto& instance) { return std::string(nameOf(instance.param)); });

TEST_P(Rules, KeepToTheBuffersOnThreads) {
  for (const int ranks : {1, 2, 3, 5}) {
    const ncclUniqueId id = newId();
    onThreads(ranks, [&](int rank) {
      const Comm comm(id, ranks, rank);
      expectAllForms(GetParam(), comm, ranks, rank, false);
    });
  }
}

// Through slots instead of references, in many small pieces, and unlike the range table would choose.
TEST_P(Rules, KeepToTheBuffersOnProcesses) {
  for (const std::string algorithm : {"", "ring", "tree", "mesh_twoshot", "halving_doubling"})
    for (const std::string protocol : {"LL", "Simple"}) {
      const Environment environment{{"NCCL_ALGO", algorithm},
                                    {"NCCL_PROTO", algorithm.empty() ? "" : protocol},
                                    {"TOPOCCL_CHANNELS", protocol == "LL" ? "2" : "0"},
                                    {"TOPOCCL_SLOT_BYTES", protocol == "LL" ? "0" : "4096"}};
      const ncclUniqueId id = newId();
      onProcesses(3, [&](int rank) {
        const Comm comm(id, 3, rank);
        expectAllForms(GetParam(), comm, 3, rank, true);
        return 0;
      });
    }
}

TEST_P(Rules, NothingNeedsNoBuffers) {
  const ncclUniqueId id = newId();
  onThreads(3, [&](int rank) {
    const Comm comm(id, 3, rank);
    Arguments nothing;
    nothing.comm = comm;
    for (int root = 0; root < 3; ++root)
      EXPECT_EQ(invoke(GetParam(), {3, rank, root}, nothing), ncclSuccess) << ncclGetLastError(nullptr);
  });
}

TEST(Bcast, IsABroadcastInPlace) {
  constexpr int kRanks = 3;
  constexpr size_t kCount = 1009;
  const ncclUniqueId id = newId();
  onThreads(kRanks, [&](int rank) {
    const Comm comm(id, kRanks, rank);
    for (int root = 0; root < kRanks; ++root) {
      std::vector<uint32_t> words(kCount + 1, 7), expected(kCount + 1, 7);
      for (size_t i = 0; i < kCount; ++i) {
        words[i] = sent(rank, i, 0);
        expected[i] = sent(root, i, 0);
      }
      ASSERT_EQ(ncclBcast(words.data(), kCount, ncclUint32, root, comm, nullptr), ncclSuccess)
          << ncclGetLastError(nullptr);
      EXPECT_EQ(words, expected);
    }
  });
}

// All calls of a rank on two communicators, in groups within a group; ranks are numbered the other way round
// in the second, and everyone sends to everyone, itself too, in another order on every rank.
TEST(Groups, HoldEveryCallOfTwoCommunicators) {
  constexpr int kRanks = 13;
  const ncclUniqueId ids[] = {newId(), newId()};
  onThreads(kRanks, [&](int thread) {
    const Site sites[] = {{kRanks, thread, 3}, {kRanks, kRanks - 1 - thread, 3}};
    const Comm first(ids[0], kRanks, sites[0].rank), second(ids[1], kRanks, sites[1].rank);
    const ncclComm_t comms[] = {first, second};
    for (const size_t count : {size_t{5}, size_t{2003}}) {
      std::deque<MovementCall> calls;
      std::vector<uint32_t> out(kRanks * count), in(kRanks * count, 1), expected(kRanks * count);
      for (size_t i = 0; i < out.size(); ++i) out[i] = sent(thread, i, 77);
      ASSERT_EQ(ncclGroupStart(), ncclSuccess);
      for (int hop = 0; hop < kRanks; ++hop) {
        const auto peer = static_cast<size_t>((thread + hop) % kRanks);
        for (size_t i = 0; i < count; ++i)
          expected[peer * count + i] =
              sent(static_cast<int>(peer), static_cast<size_t>(thread) * count + i, 77);
        ASSERT_EQ(ncclRecv(&in[peer * count], count, ncclUint32, static_cast<int>(peer), first, nullptr),
                  ncclSuccess);
        ASSERT_EQ(ncclSend(&out[peer * count], count, ncclUint32, static_cast<int>(peer), first, nullptr),
                  ncclSuccess);
      }
      for (const Movement movement : kMovements) {
        ASSERT_EQ(ncclGroupStart(), ncclSuccess);
        for (int which = 0; which < 2; ++which) {
          const Site& site = sites[which];
          if (movement == Movement::SendRecv && which == 0) continue;  // among others, above
          calls.emplace_back(movement, comms[which], kRanks, site.rank, site.root, count, which == 1,
                             static_cast<uint32_t>(which));
          ASSERT_EQ(calls.back().run(), ncclSuccess) << ncclGetLastError(nullptr);
        }
        ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
      }
      ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
      for (const MovementCall& call : calls) EXPECT_EQ(call.flaw(), "");
      EXPECT_EQ(in, expected);
    }
  });
}

}  // namespace
}  // namespace topoccl::test
