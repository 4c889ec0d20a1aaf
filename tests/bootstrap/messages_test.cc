#include "bootstrap/messages.h"

#include <gtest/gtest.h>

#include "base/crypto.h"

namespace topoccl {
namespace {

TEST(Messages, ComeBackAsTheyWere) {
  const auto join = decodeJoin(encode(Join{7, -3, INT32_MIN, 5, UINT64_MAX, 9, "host"}));
  ASSERT_TRUE(join);
  EXPECT_EQ(join->version, 7u);
  EXPECT_EQ(join->ranks, -3);
  EXPECT_EQ(join->rank, INT32_MIN);
  EXPECT_EQ(join->patienceMilliseconds, 5u);
  EXPECT_EQ(join->process, UINT64_MAX);
  EXPECT_EQ(join->processId, 9u);
  EXPECT_EQ(join->host, "host");

  const auto welcome = decodeWelcome(encode(Welcome{-1, 6, 8, "h"}));
  ASSERT_TRUE(welcome);
  EXPECT_EQ(welcome->rootRank, -1);
  EXPECT_EQ(welcome->process, 6u);
  EXPECT_EQ(welcome->processId, 8u);

  const auto failure = decodeFailure(encode(Failure{Code::InvalidUsage, 3, "why"}));
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, Code::InvalidUsage);
  EXPECT_EQ(failure->rank, 3);
  EXPECT_EQ(failure->reason, "why");

  const auto contribution = decodeContribution(encode(Contribution{4, "blob"}));
  ASSERT_TRUE(contribution);
  EXPECT_EQ(contribution->blob, "blob");

  const std::vector<std::string> blobs = {"", "a", std::string(1000, 'b')};
  EXPECT_EQ(decodeBlobs(encodeBlobs(blobs), 3), blobs);
}

TEST(Messages, CutShortOrTooLongAreRefused) {
  const std::string all[] = {encode(Join{1, 2, 0, 3, 4, 5, "host"}), encode(Welcome{0, 2, 1, "h"}),
                             encode(Failure{Code::RemoteError, 1, "r"})};
  for (size_t length = 0; length < all[0].size(); ++length)
    EXPECT_FALSE(decodeJoin(all[0].substr(0, length)));
  for (size_t length = 0; length < all[1].size(); ++length)
    EXPECT_FALSE(decodeWelcome(all[1].substr(0, length)));
  for (size_t length = 0; length < all[2].size(); ++length)
    EXPECT_FALSE(decodeFailure(all[2].substr(0, length)));
  EXPECT_FALSE(decodeJoin(all[0] + "x"));
  EXPECT_FALSE(decodeWelcome(all[1] + "x"));
  EXPECT_FALSE(decodeFailure(all[2] + "x"));
  EXPECT_FALSE(decodeContribution("abc"));
}

TEST(Messages, WithHugeLengthsAreRefusedWithoutAllocating) {
  const std::string huge(4, '\xff');
  EXPECT_FALSE(decodeBlobs(huge, 1));
  EXPECT_FALSE(decodeBlobs(huge, SIZE_MAX));
  EXPECT_FALSE(decodeBlobs("", 1));
  EXPECT_FALSE(decodeBlobs(encodeBlobs({"a"}), 2));
  EXPECT_FALSE(decodeBlobs(encodeBlobs({"a", "b"}), 1));
}

TEST(Messages, OfRandomBytesDoNoHarm) {
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random<uint8_t>(), '\0');
    randomBytes(bytes.data(), bytes.size());
    decodeJoin(bytes);
    decodeWelcome(bytes);
    decodeFailure(bytes);
    decodeContribution(bytes);
    decodeBlobs(bytes, random<uint8_t>());
  }
}

TEST(Messages, CarryNoControlCharactersIntoLogs) {
  EXPECT_EQ(printable("a\nb\x1b[1mc"), "a?b?[1mc");
  EXPECT_EQ(printable(std::string(10'000, 'x')).size(), kMaxTextBytes);
}

}  // namespace
}  // namespace topoccl
