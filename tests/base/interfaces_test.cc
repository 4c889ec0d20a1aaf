#include "base/interfaces.h"

#include <gtest/gtest.h>

namespace topoccl {
namespace {

NetworkInterface four(const std::string& name, char last) {
  return {name, SocketAddress::fromBytes(std::string({10, 0, 0, last}), 0)};
}
NetworkInterface six(const std::string& name) {
  return {name, SocketAddress::fromBytes(std::string(15, '\0') + '\1', 0)};
}

std::string chosen(const std::string& filter) {
  const std::vector<NetworkInterface> all = {six("lo"),     four("lo", 1),   four("docker0", 2),
                                             six("eth0"),   four("eth0", 3), four("eth01", 4),
                                             four("ib0", 5)};
  std::string names;
  for (const NetworkInterface& one : chooseInterfaces(all, filter))
    names += one.name + (one.address.family() == AF_INET6 ? "/6 " : " ");
  return names;
}

TEST(Interfaces, PreferInfinibandAndKeepLoopbackForLast) {
  EXPECT_EQ(chosen(""), "ib0 eth0 eth01 eth0/6 docker0 lo lo/6 ");
}

TEST(Interfaces, AreFilteredByPrefix) {
  EXPECT_EQ(chosen("eth"), "eth0/6 eth0 eth01 ");
  EXPECT_EQ(chosen("ib,lo"), "lo/6 lo ib0 ");
}

TEST(Interfaces, AreFilteredExactly) {
  EXPECT_EQ(chosen("=eth0,ib"), "eth0/6 eth0 ");
}

TEST(Interfaces, AreExcluded) {
  EXPECT_EQ(chosen("^eth,docker"), "ib0 lo lo/6 ");
  EXPECT_EQ(chosen("^=eth0"), "ib0 eth01 docker0 lo lo/6 ");
}

TEST(Interfaces, ThatAreAllFilteredOutAreListed) {
  try {
    chosen("wlan");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::InvalidArgument);
    EXPECT_NE(std::string(error.what()).find("NCCL_SOCKET_IFNAME=wlan"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("docker0"), std::string::npos);
  }
}

// In a network namespace of its own, say; NCCL_SOCKET_IFNAME was blamed.
TEST(Interfaces, ThatAreAllDownAreTheSystemsFault) {
  for (const char* filter : {"", "eth"}) {
    try {
      chooseInterfaces({}, filter);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::SystemError);
      EXPECT_NE(std::string(error.what()).find("bring up lo"), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find("NCCL_SOCKET_IFNAME"), std::string::npos) << error.what();
    }
  }
}

TEST(Interfaces, OfThisHostAreFound) {
  EXPECT_FALSE(networkInterfaces().empty());
}

}  // namespace
}  // namespace topoccl
