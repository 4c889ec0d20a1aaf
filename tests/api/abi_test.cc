// Our nccl.h against NVIDIA's: every fact that theirs prints, ours prints too.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>

namespace {

std::map<std::string, std::string> factsOf(const char* program) {
  std::map<std::string, std::string> facts;
  std::FILE* pipe = popen(("'" + std::string(program) + "'").c_str(), "r");  // paths may hold spaces
  char name[128];
  char value[64];
  while (std::fscanf(pipe, "%127s %63s", name, value) == 2) facts[name] = value;
  EXPECT_EQ(pclose(pipe), 0);
  return facts;
}

TEST(Abi, NamesOneConfigurationOfTheExpectedSize) {
  const auto ours = factsOf(ABI_FACTS);
  EXPECT_EQ(ours.at("sizeof(ncclUniqueId)"), "128");
  EXPECT_EQ(ours.at("NCCL_VERSION_CODE"), "23203");
  EXPECT_EQ(ours.at("config.nvlsHostMode"), "112");
}

TEST(Abi, EqualsNvidias) {
#ifdef ABI_FACTS_NVIDIA
  const auto ours = factsOf(ABI_FACTS);
  const auto theirs = factsOf(ABI_FACTS_NVIDIA);
  EXPECT_GT(theirs.size(), 50U);
  for (const auto& [name, value] : theirs) {
    const auto found = ours.find(name);
    ASSERT_NE(found, ours.end()) << name;
    EXPECT_EQ(found->second, value) << name;
  }
#else
  GTEST_SKIP() << "no nccl.h of NVIDIA's here";
#endif
}

}  // namespace
