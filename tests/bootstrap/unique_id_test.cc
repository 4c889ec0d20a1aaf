#include "bootstrap/unique_id.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace topoccl {
namespace {

Rendezvous example(const std::string& address) {
  Rendezvous rendezvous;
  rendezvous.address = SocketAddress::parse(address);
  rendezvous.secret = random<Secret>();
  return rendezvous;
}

TEST(UniqueId, SaysWhatWasPutIn) {
  for (const char* address : {"10.1.2.3:4567", "[fd00::12]:9"}) {
    const Rendezvous in = example(address);
    const Rendezvous out = decodeUniqueId(encodeUniqueId(in));
    EXPECT_EQ(out.address.text(), address);
    EXPECT_EQ(out.secret, in.secret);
    EXPECT_FALSE(out.fromCommId);
  }
}

TEST(UniqueId, WithAnyBitFlippedIsRefused) {
  const UniqueId id = encodeUniqueId(example("10.1.2.3:4567"));
  for (size_t bit = 0; bit < 8 * id.bytes.size(); ++bit) {
    UniqueId damaged = id;
    damaged.bytes[bit / 8] = static_cast<char>(damaged.bytes[bit / 8] ^ (1 << bit % 8));
    EXPECT_THROW(decodeUniqueId(damaged), Error) << bit;
  }
}

TEST(UniqueId, OfZerosIsRefused) {
  EXPECT_THROW(decodeUniqueId(UniqueId{}), Error);
}

TEST(UniqueId, FromCommIdIsTheSameEverywhere) {
  Settings settings;
  settings.commId = "127.0.0.1:7000";
  const UniqueId id = uniqueIdFromCommId(settings);
  EXPECT_EQ(id, uniqueIdFromCommId(settings));
  EXPECT_TRUE(decodeUniqueId(id).fromCommId);
  settings.secret = "a shared phrase";
  EXPECT_NE(id, uniqueIdFromCommId(settings));
  settings.secret.clear();
  settings.commId = "127.0.0.1:7001";
  EXPECT_NE(decodeUniqueId(id).secret, decodeUniqueId(uniqueIdFromCommId(settings)).secret);
  for (const std::string wrong :
       {"nonsense", "127.0.0.1:0", "127.0.0.1:99999", "no.such.host.invalid:7000"}) {
    settings.commId = wrong;
    try {
      uniqueIdFromCommId(settings);
      ADD_FAILURE() << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::InvalidArgument);
      EXPECT_EQ(std::string(error.what()).find("NCCL_COMM_ID=" + wrong + ": "), 0U) << error.what();
    }
  }
}

}  // namespace
}  // namespace topoccl
