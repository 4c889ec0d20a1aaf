// Counts beyond 2^32: every call moves blocks of more than 2^32 elements. Some bytes are checked, where
// blocks begin and end and around multiples of 2^28, while all others are written to the same few pages, over
// and over. With TOPOCCL_TEST_FULL=1 there are calls of which every byte is checked, if memory suffices.
#include <sys/mman.h>

#include <cstring>
#include <fstream>
#include <memory>

#include "communicator/movements.h"
#include "communicator/ranks.h"
#include "support/repeated_memory.h"
#include "support/sanitized.h"

namespace topoccl::test {
namespace {

constexpr int kRanks = 2;
constexpr int kRoot = 1;
constexpr size_t kCount = (size_t{1} << 32) + 1'000'003;  // whole pieces beyond 2^32
constexpr uint64_t kReserveBytes = uint64_t{1} << 30;     // for the windows of all buffers, and for others

// The bytes from begin to end.
struct Window {
  size_t begin, end;
};

// What is checked of a buffer, from whole pages on.
std::vector<Window> windowsOf(size_t blocks, bool all) {
  constexpr size_t kNear = size_t{2} << 20, kStride = size_t{1} << 28;
  const size_t bytes = blocks * kCount;
  if (all) return {{0, bytes}};
  std::vector<size_t> centres;
  for (size_t block = 0; block <= blocks; ++block) centres.push_back(block * kCount);
  for (size_t at = kStride; at < bytes; at += kStride) centres.push_back(at);
  std::vector<Window> windows;
  for (const size_t centre : centres) {
    const size_t middle = centre & ~size_t{4095};
    windows.push_back({middle > kNear ? middle - kNear : 0, std::min(middle + kNear, bytes)});
  }
  return windows;
}

// What a rank receives: zeros until something writes to them, and a page more than asked for.
class ReceiveMemory {
 public:
  ReceiveMemory(size_t blocks, bool checksAll)
      : bytes_(blocks * kCount),
        windows_(windowsOf(blocks, checksAll)),
        memory_(bytes_ + kTail, RepeatedMemory::pattern(99), PROT_READ | PROT_WRITE) {
    for (const Window& window : windows_) {
      void* const begin = data() + window.begin;
      const size_t bytes = window.end - window.begin + (window.end == bytes_ ? kTail : 0);
      if (::mmap(begin, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
          begin)
        throw std::runtime_error("mmap of a window");
      ::madvise(begin, bytes, MADV_HUGEPAGE);
    }
  }

  uint8_t* data() const { return memory_.data(); }
  const std::vector<Window>& windows() const { return windows_; }
  bool tailIsFresh() const {
    const uint8_t* const tail = data() + bytes_;
    return bytes_ == 0 || std::all_of(tail, tail + kTail, [](uint8_t byte) { return byte == 0; });
  }

 private:
  static constexpr size_t kTail = 4096;

  size_t bytes_;
  std::vector<Window> windows_;
  RepeatedMemory memory_;
};

// What may be taken without the machine running out of memory: of the kernel's number and the control
// group's.
uint64_t availableBytes() {
  uint64_t available = 0;
  std::ifstream memory("/proc/meminfo");
  for (std::string word; memory >> word;)
    if (word == "MemAvailable:" && memory >> available) available <<= 10;
  uint64_t limit = 0, used = 0;
  std::ifstream("/sys/fs/cgroup/memory.max") >> limit;  // "max" or none: stays 0
  std::ifstream("/sys/fs/cgroup/memory.current") >> used;
  return limit == 0 ? available : std::min(available, limit > used ? limit - used : 0);
}

size_t blocksOf(Movement movement) {
  const Site site{kRanks, kRoot, kRoot};
  return std::max(sendBlocks(movement, site), receiveBlocks(movement, site));
}

uint64_t bytesReceived(Movement movement) {
  uint64_t bytes = 0;
  for (int rank = 0; rank < kRanks; ++rank) bytes += receiveBlocks(movement, {kRanks, rank, kRoot}) * kCount;
  return bytes;
}

// Why a test can't run here; empty if it can.
std::string obstacle(bool onlyFull, uint64_t bytes) {
  if (kSanitized) return "too slow with a sanitizer";
  if (onlyFull && std::getenv("TOPOCCL_TEST_FULL") == nullptr)
    return "takes some seconds: only with TOPOCCL_TEST_FULL=1";
  const uint64_t available = availableBytes();
  if (available >= bytes) return "";
  return "needs " + std::to_string(bytes >> 20) + " MiB of memory, " + std::to_string(available >> 20) +
         " are available";
}

// What every rank sends, and all of them reduced.
struct Sources {
  explicit Sources(size_t bytes) {
    std::vector<uint8_t> reduced(RepeatedMemory::period());
    for (int rank = 0; rank < kRanks; ++rank) {
      const std::vector<uint8_t> pattern = RepeatedMemory::pattern(static_cast<uint64_t>(rank));
      for (size_t i = 0; i < reduced.size(); ++i) reduced[i] = std::max(reduced[i], pattern[i]);
      ofRank[rank] = std::make_unique<RepeatedMemory>(bytes, pattern);
    }
    ofAll = std::make_unique<RepeatedMemory>(bytes, reduced);
  }

  const uint8_t* at(const Origin& origin) const {
    const auto& memory = origin.rank == Origin::kAll ? ofAll : ofRank[origin.rank];
    return memory->data() + origin.index;
  }

  std::unique_ptr<RepeatedMemory> ofRank[kRanks], ofAll;
};

void expectMoved(Movement movement, const Site& site, const Sources& sources, bool checksAll,
                 ncclComm_t comm) {
  const size_t receives = receiveBlocks(movement, site);
  const ReceiveMemory received(receives, checksAll);
  Arguments arguments;
  arguments.send = sources.at({site.rank, 0});
  arguments.receive = received.data();
  arguments.count = kCount;
  arguments.type = ncclUint8;
  arguments.op = ncclMax;
  arguments.comm = comm;
  ASSERT_EQ(invoke(movement, site, arguments), ncclSuccess) << ncclGetLastError(nullptr);
  for (size_t block = 0; block < receives; ++block)
    for (const Window& window : received.windows()) {
      const size_t begin = std::max(window.begin, block * kCount);
      const size_t end = std::min(window.end, (block + 1) * kCount);
      if (begin >= end) continue;
      const uint8_t* const expected = sources.at(originOf(movement, site, kCount, begin));
      const uint8_t* const found = received.data() + begin;
      EXPECT_EQ(std::memcmp(found, expected, end - begin), 0)
          << "rank " << site.rank << " block " << block << ": wrong from byte "
          << std::mismatch(found, found + (end - begin), expected).first - received.data();
    }
  EXPECT_TRUE(received.tailIsFresh());
}

void expectMovedOnThreads(Movement movement, bool checksAll) {
  const Sources sources(blocksOf(movement) * kCount);
  const ncclUniqueId id = newId();
  onThreads(kRanks, [&](int rank) {
    const Comm comm(id, kRanks, rank);
    expectMoved(movement, {kRanks, rank, kRoot}, sources, checksAll, comm);
  });
}

std::string nameOfInstance(const testing::TestParamInfo<Movement>& instance) {
  return nameOf(instance.param);
}

constexpr Movement kOften[] = {Movement::AllReduce, Movement::Gather};

class LargeCounts : public testing::TestWithParam<Movement> {};
INSTANTIATE_TEST_SUITE_P(Of, LargeCounts, testing::ValuesIn(kMovements), nameOfInstance);

TEST_P(LargeCounts, ArriveWhereTheyBelong) {
  const bool often = std::find(std::begin(kOften), std::end(kOften), GetParam()) != std::end(kOften);
  if (const std::string reason = obstacle(!often, kReserveBytes); !reason.empty()) GTEST_SKIP() << reason;
  expectMovedOnThreads(GetParam(), false);
}

class LargeCountsThroughout : public testing::TestWithParam<Movement> {};
INSTANTIATE_TEST_SUITE_P(Of, LargeCountsThroughout, testing::ValuesIn(kOften), nameOfInstance);

TEST_P(LargeCountsThroughout, AreRightInEveryByte) {
  const std::string reason = obstacle(true, kReserveBytes + bytesReceived(GetParam()));
  if (!reason.empty()) GTEST_SKIP() << reason;
  expectMovedOnThreads(GetParam(), true);
}

// Without references between threads, as between processes.
class LargeCountsInSlots : public testing::TestWithParam<Movement> {};
INSTANTIATE_TEST_SUITE_P(Of, LargeCountsInSlots,
                         testing::Values(Movement::AllReduce, Movement::AllGather, Movement::SendRecv),
                         nameOfInstance);

TEST_P(LargeCountsInSlots, ArriveWhereTheyBelong) {
  if (const std::string reason = obstacle(true, kReserveBytes); !reason.empty()) GTEST_SKIP() << reason;
  const Environment environment{{"TOPOCCL_REFERENCES", "0"}};
  expectMovedOnThreads(GetParam(), false);
}

}  // namespace
}  // namespace topoccl::test
