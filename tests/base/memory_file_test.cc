#include "base/memory_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>

#include "base/error.h"

namespace topoccl {
namespace {

TEST(MemoryFile, IsSharedByWhoeverAdoptsItsDescriptor) {
  MemoryFile made = MemoryFile::create(10'000, "test");
  EXPECT_EQ(made.data()[9'999], std::byte{0});
  const MemoryFile adopted = MemoryFile::adopt(Descriptor(::dup(made.descriptor())), 10'000);
  made.data()[9'999] = std::byte{7};
  EXPECT_EQ(adopted.data()[9'999], std::byte{7});
}

TEST(MemoryFile, CantBeResizedOrUnsealed) {
  const MemoryFile made = MemoryFile::create(8192, "test");
  EXPECT_NE(::ftruncate(made.descriptor(), 0), 0);
  EXPECT_NE(::ftruncate(made.descriptor(), 16384), 0);
  EXPECT_NE(::fcntl(made.descriptor(), F_ADD_SEALS, F_SEAL_WRITE), 0);
}

TEST(MemoryFile, ClosesOnExec) {
  const MemoryFile made = MemoryFile::create(4096, "test");
  EXPECT_TRUE(::fcntl(made.descriptor(), F_GETFD) & FD_CLOEXEC);
}

TEST(MemoryFile, ThatIsNotSealedIsRefused) {
  Descriptor file(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(file.get(), 4096), 0);
  EXPECT_THROW(MemoryFile::adopt(std::move(file), 4096), Error);
}

TEST(MemoryFile, OfAnotherSizeIsRefused) {
  const MemoryFile made = MemoryFile::create(4096, "test");
  EXPECT_THROW(MemoryFile::adopt(Descriptor(::dup(made.descriptor())), 8192), Error);
}

TEST(MemoryFile, ThatIsNoMemoryFileIsRefused) {
  EXPECT_THROW(MemoryFile::adopt(Descriptor(::open("/dev/zero", O_RDWR | O_CLOEXEC)), 4096), Error);
}

TEST(MemoryFile, LargerThanTheMachineIsAnErrorThatNamesTheSize) {
  try {
    MemoryFile::create(size_t{1} << 62, "test");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::SystemError);
    EXPECT_NE(std::string(error.what()).find("4611686018427387904 bytes"), std::string::npos) << error.what();
  }
}

TEST(MemoryFile, AnonymousHasNoDescriptor) {
  MemoryFile memory = MemoryFile::anonymous(100'000);
  EXPECT_EQ(memory.descriptor(), -1);
  std::memset(memory.data(), 1, memory.bytes());
  MemoryFile moved = std::move(memory);
  EXPECT_FALSE(memory);
  EXPECT_EQ(moved.data()[99'999], std::byte{1});
}

// ---- locks: who is alive ----

// A process that locks byte 3 of the file and then runs `rest`. Returns when it has locked.
pid_t locker(const MemoryFile& file, const std::function<void()>& rest) {
  int ready[2];
  EXPECT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  const int inherited = ::dup(file.descriptor());  // the library's own a child closes
  const pid_t child = ::fork();
  if (child == 0) {
    const MemoryFile mine = MemoryFile::adopt(Descriptor(inherited), file.bytes());
    mine.lock(3);
    EXPECT_GE(::dup(inherited), 0);  // for children of its own
    EXPECT_EQ(::write(ready[1], "x", 1), 1);
    rest();
    ::_exit(0);
  }
  ::close(inherited);
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  ::close(ready[1]);
  return child;
}

void sleepForEver() {
  for (;;) ::pause();
}

TEST(MemoryFile, LocksEndWithTheirProcess) {
  const MemoryFile file = MemoryFile::create(4096, "test");
  EXPECT_FALSE(file.lockedElsewhere(3));
  const pid_t child = locker(file, sleepForEver);
  EXPECT_TRUE(file.lockedElsewhere(3));
  EXPECT_FALSE(file.lockedElsewhere(2));
  EXPECT_FALSE(file.lockedElsewhere(4));
  ::kill(child, SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  EXPECT_TRUE(file.lockedElsewhere(3)) << "stopped is not dead";
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_FALSE(file.lockedElsewhere(3));
}

TEST(MemoryFile, LocksAreNotInherited) {
  const MemoryFile file = MemoryFile::create(4096, "test");
  int heir[2];
  ASSERT_EQ(::pipe2(heir, O_CLOEXEC), 0);
  const pid_t child = locker(file, [&] {
    const pid_t grandchild = ::fork();
    if (grandchild == 0) sleepForEver();
    EXPECT_EQ(::write(heir[1], &grandchild, sizeof(grandchild)), static_cast<ssize_t>(sizeof(grandchild)));
  });
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  pid_t grandchild = 0;
  ASSERT_EQ(::read(heir[0], &grandchild, sizeof(grandchild)), static_cast<ssize_t>(sizeof(grandchild)));
  EXPECT_FALSE(file.lockedElsewhere(3)) << "a child that holds the file keeps its parent alive";
  ::kill(grandchild, SIGKILL);
  ::close(heir[0]);
  ::close(heir[1]);
}

TEST(MemoryFile, LocksOfAnonymousMemoryAreNone) {
  const MemoryFile memory = MemoryFile::anonymous(4096);
  memory.lock(3);
  EXPECT_TRUE(memory.lockedElsewhere(3));
}

}  // namespace
}  // namespace topoccl
