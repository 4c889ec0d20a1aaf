// Texts for users name algorithms, protocols and tables as the library takes them.
#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "algorithms/catalog.h"
#include "algorithms/range_table.h"
#include "base/error.h"

namespace topoccl::test {
namespace {

std::string textOf(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(TOPOCCL_ROOT "/" + path).rdbuf();
  EXPECT_FALSE(text.str().empty()) << path;
  return text.str();
}

// From `first` up to and without `last`.
std::string part(const std::string& text, const std::string& first, const std::string& last) {
  const size_t begin = text.find(first);
  EXPECT_NE(begin, std::string::npos) << first;
  return text.substr(begin, text.find(last, begin) - begin);
}

// What stands between two of `quote` and is a word of lower case.
std::vector<std::string> quotedWords(const std::string& text, char quote) {
  const std::string letters = "abcdefghijklmnopqrstuvwxyz";
  std::vector<std::string> words;
  for (size_t begin = text.find(quote); begin != std::string::npos;) {
    const size_t end = text.find_first_not_of(letters + "0123456789_-", begin + 1);
    const bool isWord =
        end != std::string::npos && text[end] == quote && letters.find(text[begin + 1]) != std::string::npos;
    if (isWord) words.push_back(text.substr(begin + 1, end - begin - 1));
    begin = text.find(quote, isWord ? end + 1 : begin + 1);
  }
  return words;
}

// "^": also names that name nothing here may be excluded.
bool isAlgorithm(const std::string& name) {
  try {
    parseFilter(Collective::AllReduce, "^" + name, "");
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(Names, InTheDocumentAreTaken) {
  const std::string text = textOf("docs/algorithms.md");
  for (const std::string& name : quotedWords(part(text, "`NCCL_ALGO` takes", "`NCCL_PROTO` takes"), '`'))
    EXPECT_TRUE(isAlgorithm(name)) << name;
  for (const std::string& name : quotedWords(part(text, "`NCCL_PROTO` takes", "Case does"), '`'))
    EXPECT_NO_THROW(parseFilter(Collective::AllReduce, "", name)) << name;
}

TEST(Names, OfAllAlgorithmsAreInTheDocument) {
  const std::string text = part(textOf("docs/algorithms.md"), "`NCCL_ALGO` takes", "`NCCL_PROTO` takes");
  for (int i = 0; i <= static_cast<int>(Algorithm::HalvingDoubling); ++i) {
    const std::string name = topoccl::name(static_cast<Algorithm>(i));
    EXPECT_NE(text.find("`" + name + "`"), std::string::npos) << name;
  }
}

// Every collective, in all spellings, wherever a collective is named.
TEST(Names, OfCollectivesAreTakenInBothSpellingsEverywhere) {
  const std::string text = textOf("docs/algorithms.md");
  const auto documented = quotedWords(part(text, "Collectives are called", "in these variables"), '`');
  ASSERT_EQ(documented.size(), size_t{kCollectives});
  for (size_t i = 0; i < documented.size(); ++i) {
    const auto collective = static_cast<Collective>(i);
    EXPECT_EQ(documented[i], name(collective));
    std::string nccls = documented[i];
    std::erase(nccls, '_');
    std::string capitals = nccls;
    capitals[0] = static_cast<char>(std::toupper(capitals[0]));
    for (const std::string& spelling : {documented[i], nccls, capitals}) {
      EXPECT_EQ(collectiveNamed(spelling), collective) << spelling;
      const ChoiceFilter filter = parseFilter(collective, spelling + ":mesh", spelling + ":LL");
      EXPECT_FALSE(filter.allows({Algorithm::Ring, Protocol::Packet, 1})) << spelling;
      EXPECT_FALSE(filter.allows({Algorithm::MeshOneShot, Protocol::Bulk, 1})) << spelling;
      EXPECT_EQ(RangeTable::parse(spelling + " 1-* 0-* mesh_oneshot/packet/1").rows()[0].collective,
                collective);
    }
  }
  for (const char* wrong : {"", "allreduces", "all-reduce", "send_recv"})
    EXPECT_EQ(collectiveNamed(wrong), std::nullopt) << wrong;
}

TEST(Names, InTheHeaderAreTaken) {
  const auto names = quotedWords(part(textOf("include/topoccl.h"), "char algorithm[", "\n"), '"');
  EXPECT_GE(names.size(), 3U);
  for (const std::string& name : names) EXPECT_TRUE(isAlgorithm(name)) << name;
}

TEST(Names, OfTheDocumentsTableAreTaken) {
  const RangeTable table = RangeTable::parse(part(textOf("docs/algorithms.md"), "# collective", "```"));
  EXPECT_EQ(table.rows().size(), 2U);
}

}  // namespace
}  // namespace topoccl::test
