#include "base/memory_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

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

}  // namespace
}  // namespace topoccl
