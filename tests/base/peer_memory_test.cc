// Other processes' memory, read by address: what is there, what isn't, and who isn't there any more.
#include "base/peer_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "support/child.h"
#include "support/deny_call.h"
#include "support/shared_value.h"

namespace topoccl::test {
namespace {

using Bytes = std::vector<unsigned char>;

Bytes pattern(size_t count) {
  Bytes bytes(count);
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(7));
  return bytes;
}

// What a child tells of itself.
struct Told {
  std::atomic<bool> there{false};
  MemoryOwner owner;
  const void* data = nullptr;
};

// A child that holds `bytes` until it is killed.
class Holder {
 public:
  explicit Holder(const Bytes& bytes) {
    child_ = startChild([&] {
      const Bytes own = bytes;  // its copy, at an address of its own
      told_->owner = ownMemory();
      told_->data = own.data();
      told_->there = true;
      for (;;) ::pause();
      return 0;
    });
    while (!told_->there) ::usleep(500);
  }
  ~Holder() { kill(); }

  void kill() {
    if (child_ == 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = 0;
  }

  const Told& told() { return *told_; }

 private:
  SharedValue<Told> told_;
  pid_t child_ = 0;
};

TEST(PeerMemory, IsReadByAddressWhateverTheSize) {
  const Bytes bytes = pattern(3'000'017);
  Holder holder(bytes);
  const std::optional<PeerMemory> memory = PeerMemory::attach(holder.told().owner);
  ASSERT_TRUE(memory);
  for (const size_t count : {size_t{0}, size_t{1}, size_t{4095}, size_t{70'001}, bytes.size()}) {
    Bytes got(count + 1, 0xee);
    EXPECT_EQ(memory->read(got.data(), holder.told().data, count), 0);
    EXPECT_TRUE(std::equal(got.begin(), got.end() - 1, bytes.begin())) << count;
    EXPECT_EQ(got.back(), 0xee) << "one too many";
  }
}

TEST(PeerMemory, IsThisProcessesToo) {
  const Bytes bytes = pattern(1000);
  const std::optional<PeerMemory> memory = PeerMemory::attach(ownMemory());
  ASSERT_TRUE(memory);
  Bytes got(1000);
  EXPECT_EQ(memory->read(got.data(), bytes.data(), 1000), 0);
  EXPECT_EQ(got, bytes);
}

TEST(PeerMemory, WhatIsNotThereIsAnError) {
  Holder holder(pattern(100));
  const std::optional<PeerMemory> memory = PeerMemory::attach(holder.told().owner);
  ASSERT_TRUE(memory);
  Bytes got(100);
  EXPECT_EQ(memory->read(got.data(), nullptr, 100), EFAULT);
  // Ends in the middle: a page, and one that nobody may read.
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* const two = ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(two, MAP_FAILED);
  ASSERT_EQ(::mprotect(static_cast<char*>(two) + page, page, PROT_NONE), 0);
  Holder second(pattern(1));  // has both pages, as they were when it was forked
  const std::optional<PeerMemory> memoryOfSecond = PeerMemory::attach(second.told().owner);
  ASSERT_TRUE(memoryOfSecond);
  Bytes all(2 * page);
  EXPECT_EQ(memoryOfSecond->read(all.data(), two, page), 0);
  EXPECT_EQ(memoryOfSecond->read(all.data(), two, 2 * page), EFAULT);
  ::munmap(two, 2 * page);
}

TEST(PeerMemory, OfAProcessThatIsGoneIsGone) {
  Holder holder(pattern(100));
  const MemoryOwner owner = holder.told().owner;
  const std::optional<PeerMemory> memory = PeerMemory::attach(owner);
  ASSERT_TRUE(memory);
  holder.kill();
  Bytes got(100);
  EXPECT_EQ(memory->read(got.data(), holder.told().data, 100), ESRCH);
  EXPECT_FALSE(PeerMemory::attach(owner));
}

// A process's number that is another's now, or another's here.
TEST(PeerMemory, OfAnotherProcessOfThatNumberIsRefused) {
  Holder holder(pattern(100));
  MemoryOwner owner = holder.told().owner;
  owner.token ^= 1;
  EXPECT_FALSE(PeerMemory::attach(owner)) << "another token";
  owner = holder.told().owner;
  owner.tokenAt = nullptr;
  EXPECT_FALSE(PeerMemory::attach(owner)) << "no memory there";
  EXPECT_FALSE(PeerMemory::attach({})) << "nobody";
  // It was right when attached, and is another's when read: the child's token is where it was, and changes.
  uint64_t token = ownMemory().token;
  const std::optional<PeerMemory> memory = PeerMemory::attach({::getpid(), token, &token});
  ASSERT_TRUE(memory);
  token = 5;
  unsigned char got = 0;
  EXPECT_EQ(memory->read(&got, &token, 1), ESRCH);
}

TEST(PeerMemory, IsOutOfReachWhereTheCallIsDenied) {
  std::thread([] {
    if (!denyCall(SYS_process_vm_readv)) GTEST_SKIP() << "SKIPPED: threads may not restrict themselves";
    EXPECT_FALSE(PeerMemory::attach(ownMemory()));
  }).join();
}

}  // namespace
}  // namespace topoccl::test
