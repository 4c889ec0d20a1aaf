// ncclConfig_t from headers of every age.
#include "api/config.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace topoccl::api {
namespace {

// The structure as NCCL 2.14 had it, with the padding that a later member now occupies.
struct Config214 {
  size_t size;
  unsigned magic;
  unsigned version;
  int blocking;
};

const ncclConfig_t* asConfig(const void* other) {
  return static_cast<const ncclConfig_t*>(other);
}

ncclConfig_t initialized() {
  const ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  return config;
}

std::string rejection(const ncclConfig_t& config) {
  try {
    readConfig(&config);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::InvalidArgument);
    return error.what();
  }
  return "";
}

TEST(Config, NullAndUntouchedMeanDefaults) {
  const ncclConfig_t untouched = initialized();
  for (const CommConfig& config : {readConfig(nullptr), readConfig(&untouched)}) {
    EXPECT_EQ(config.blocking, 1);
    EXPECT_EQ(config.minChannels, 0);
    EXPECT_EQ(config.maxChannels, 0);
    EXPECT_EQ(config.name, "");
  }
}

TEST(Config, SetMembersArrive) {
  ncclConfig_t config = initialized();
  config.blocking = 0;
  config.minCTAs = 2;
  config.maxCTAs = 8;
  config.commName = "world";
  const CommConfig read = readConfig(&config);
  EXPECT_EQ(read.blocking, 0);
  EXPECT_EQ(read.minChannels, 2);
  EXPECT_EQ(read.maxChannels, 8);
  EXPECT_EQ(read.name, "world");
}

TEST(Config, AnOldStructuresPaddingIsNotANewMember) {
  Config214 old{};
  std::memset(&old, 0x7f, sizeof old);
  old = {sizeof old, NCCL_API_MAGIC, NCCL_VERSION(2, 14, 3), 0};
  ASSERT_EQ(sizeof old, 24U) << "the padding covers cgaClusterSize";
  EXPECT_EQ(readConfig(asConfig(&old)).blocking, 0);
}

TEST(Config, MembersNewerThanTheVersionKeepDefaults) {
  ncclConfig_t config = initialized();
  config.version = NCCL_VERSION(2, 16, 2);
  config.minCTAs = -7;  // since 2.17: garbage to a 2.16 program
  EXPECT_EQ(readConfig(&config).minChannels, 0);
  config.version = NCCL_VERSION(2, 26, 5);
  config.minCTAs = 3;
  config.commName = reinterpret_cast<const char*>(1);  // since 2.27
  EXPECT_EQ(readConfig(&config).minChannels, 3);
  EXPECT_EQ(readConfig(&config).name, "");
}

// vLLM lays out 2.28's structure and fills in the version of the library it runs on.
TEST(Config, AShortStructureWithOurVersionIsReadToItsSize) {
  ncclConfig_t whole = initialized();
  whole.blocking = 0;
  whole.commName = "short";
  const size_t size = offsetof(ncclConfig_t, graphUsageMode);
  whole.size = size;
  // Exactly as long as it says, so that a sanitizer sees any read beyond.
  std::vector<char> bytes(size);
  std::memcpy(bytes.data(), &whole, size);
  const CommConfig read = readConfig(asConfig(bytes.data()));
  EXPECT_EQ(read.blocking, 0);
  EXPECT_EQ(read.name, "short");
}

TEST(Config, ASizeThatEndsWithinAPointerLeavesThatMemberOut) {
  ncclConfig_t config = initialized();
  config.minCTAs = 3;
  std::memset(&config.commName, 0x41, sizeof config.commName);
  config.size = offsetof(ncclConfig_t, commName) + sizeof config.commName / 2;
  EXPECT_EQ(readConfig(&config).name, "");
  EXPECT_EQ(readConfig(&config).minChannels, 3);
}

TEST(Config, ALargerNewerStructureIsUnderstood) {
  struct Newer {
    ncclConfig_t known;
    char more[64];
  } newer{initialized(), {}};
  newer.known.size = sizeof newer;
  newer.known.version = NCCL_VERSION(2, 99, 0);
  newer.known.blocking = 0;
  EXPECT_EQ(readConfig(&newer.known).blocking, 0);
}

TEST(Config, MistakesAreNamed) {
  const auto with = [](auto change) {
    ncclConfig_t config = initialized();
    change(config);
    return rejection(config);
  };
  EXPECT_NE(with([](auto& c) { c.magic = 0x1234; }).find("config->magic is 0x1234; it must be 0xcafebeef"),
            std::string::npos);
  EXPECT_NE(with([](auto& c) { c.size = 7; }).find("config->size is 7; it must be at least 16"),
            std::string::npos);
  EXPECT_NE(with([](auto& c) { c.blocking = 2; }).find("config->blocking is 2; it must be 0 or 1"),
            std::string::npos);
  EXPECT_NE(with([](auto& c) { c.minCTAs = 0; }).find("config->minCTAs is 0"), std::string::npos);
  EXPECT_NE(with([](auto& c) { c.maxCTAs = -1; }).find("config->maxCTAs is -1"), std::string::npos);
  EXPECT_NE(with([](auto& c) { c.minCTAs = 9, c.maxCTAs = 8; }).find("at most config->maxCTAs, which is 8"),
            std::string::npos);
}

}  // namespace
}  // namespace topoccl::api
