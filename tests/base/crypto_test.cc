#include "base/crypto.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/version.h"

namespace topoccl {
namespace {

TEST(Hash, TellsApartHowPartsAreCut) {
  EXPECT_EQ(hash({"ab", "c"}), hash({"ab", "c"}));
  EXPECT_NE(hash({"ab", "c"}), hash({"a", "bc"}));
  EXPECT_NE(hash({"ab"}), hash({"ab", ""}));
}

TEST(Mac, DependsOnKeyAndText) {
  const Bytes32 one = random<Bytes32>(), two = random<Bytes32>();
  EXPECT_NE(one, two);
  EXPECT_EQ(mac(one, {"x"}), mac(one, {"x"}));
  EXPECT_NE(mac(one, {"x"}), mac(two, {"x"}));
  EXPECT_NE(mac(one, {"x"}), mac(one, {"y"}));
}

TEST(SameBytes, ComparesLengthAndContent) {
  EXPECT_TRUE(sameBytes("abc", "abc"));
  EXPECT_FALSE(sameBytes("abc", "abd"));
  EXPECT_FALSE(sameBytes("abc", "ab"));
  EXPECT_TRUE(sameBytes("", ""));
}

TEST(Bytes, ReadBackWhatWasWritten) {
  const std::string bytes =
      ByteWriter().number(uint8_t{200}).number(uint64_t{1} << 63).text("hello").number(uint16_t{9}).take();
  ByteReader reader(bytes);
  EXPECT_EQ(reader.number<uint8_t>(), 200);
  EXPECT_EQ(reader.number<uint64_t>(), uint64_t{1} << 63);
  EXPECT_EQ(reader.text(5), "hello");
  EXPECT_EQ(reader.number<uint16_t>(), 9);
  EXPECT_TRUE(reader.done());
}

TEST(Bytes, NeverReadPastTheEnd) {
  ByteReader reader(std::string_view("\x05\0\0\0ab", 6));
  EXPECT_EQ(reader.text(100), "");
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.number<uint8_t>(), 0);
  ByteReader longer(std::string_view("\x02\0\0\0ab", 6));
  EXPECT_EQ(longer.text(1), "");
  EXPECT_FALSE(longer.ok());
}

TEST(Version, IsTheProjects) {
  EXPECT_EQ(concat(kLibraryVersion / 10000, ".", kLibraryVersion / 100 % 100, ".", kLibraryVersion % 100),
            TOPOCCL_VERSION_TEXT);
}

}  // namespace
}  // namespace topoccl
