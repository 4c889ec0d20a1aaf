#include "device/host.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <bit>
#include <cstring>

#include "base/error.h"

namespace topoccl {
namespace {

TEST(Host, AllocatesZeroedPages) {
  for (const size_t bytes : {size_t{1}, size_t{4096}, size_t{4097}, size_t{1} << 20}) {
    auto* const memory = static_cast<unsigned char*>(allocateHost(bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 4096, 0U);
    for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(memory[i], 0);
    std::memset(memory, 1, bytes);
    freeHost(memory);
  }
}

TEST(Host, NamesASizeThatCannotBe) {
  try {
    allocateHost(SIZE_MAX / 2);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(std::to_string(SIZE_MAX / 2)), std::string::npos)
        << error.what();
  }
  EXPECT_THROW(allocateHost(SIZE_MAX), Error);
}

TEST(Host, FreesOnlyWhatItGaveAndOnlyOnce) {
  void* const memory = allocateHost(100);
  EXPECT_THROW(freeHost(static_cast<char*>(memory) + 1), Error);
  freeHost(memory);
  EXPECT_THROW(freeHost(memory), Error);
  int other = 0;
  EXPECT_THROW(freeHost(&other), Error);
}

TEST(Host, KnowsTheAffinityMask) {
  cpu_set_t set;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(set), &set), 0);
  int count = 0;
  const auto words = allowedCores();
  for (const uint64_t word : words) count += std::popcount(word);
  EXPECT_EQ(count, CPU_COUNT(&set));
}

}  // namespace
}  // namespace topoccl
