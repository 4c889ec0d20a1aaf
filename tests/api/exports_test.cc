// What the two shared libraries export, by `nm`.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

namespace {

std::string outputOf(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return text;
}

// Symbol -> nm's letter.
std::map<std::string, char> exportsOf(const std::string& library) {
  std::map<std::string, char> symbols;
  std::istringstream lines(outputOf("nm -D --defined-only --demangle '" + library + "'"));
  for (std::string line; std::getline(lines, line);) {
    // "ADDRESS LETTER NAME"; names may hold spaces.
    const size_t letter = line.find(' ') + 1;
    symbols[line.substr(letter + 2)] = line[letter];
  }
  return symbols;
}

// The functions nccl.h declares, without prefix: "pnccl" at a word's start, then a name, then "(".
std::set<std::string> declaredNames() {
  std::stringstream header;
  header << std::ifstream(TOPOCCL_HEADER).rdbuf();
  const std::string text = header.str();
  const std::string prefix = " pnccl";
  std::set<std::string> names;
  for (size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at + 1)) {
    const size_t start = at + prefix.size();
    const size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", start);
    if (end != std::string::npos && end > start && text[end] == '(')
      names.insert(text.substr(start, end - start));
  }
  return names;
}

bool startsWith(const std::string& text, const std::string& prefix) {
  return text.rfind(prefix, 0) == 0;
}

TEST(Exports, EveryDeclaredFunctionExistsWeakAndWithItsStrongTwin) {
  const std::set<std::string> names = declaredNames();
  ASSERT_GE(names.size(), 19U);
  for (const char* library : {LIBTOPOCCL, LIBNCCL}) {
    auto symbols = exportsOf(library);
    for (const std::string& name : names) {
      EXPECT_EQ(symbols["nccl" + name], 'W') << library << " " << name;
      EXPECT_EQ(symbols["pnccl" + name], 'T') << library << " " << name;
    }
  }
}

TEST(Exports, LibncclExportsNothingElse) {
  const auto symbols = exportsOf(LIBNCCL);
  EXPECT_EQ(symbols.size(), 2 * declaredNames().size());
  for (const auto& [name, letter] : symbols)
    EXPECT_TRUE(startsWith(name, "nccl") || startsWith(name, "pnccl")) << name;
}

TEST(Exports, LibtopocclExportsItsInterfacesOnly) {
  for (const auto& [name, letter] : exportsOf(LIBTOPOCCL)) {
    const bool isC = name.find("::") == std::string::npos;
    const bool isOurs = startsWith(name, "nccl") || startsWith(name, "pnccl") || startsWith(name, "topoccl");
    EXPECT_TRUE(isC ? isOurs : startsWith(name, "topoccl::api::")) << name;
  }
}

TEST(Exports, LibncclHasNcclsNameAndFindsLibtopocclBesideIt) {
  const std::string dynamic = outputOf("readelf -d '" LIBNCCL "'");
  EXPECT_NE(dynamic.find("soname: [libnccl.so.2]"), std::string::npos) << dynamic;
  EXPECT_NE(dynamic.find("runpath: [$ORIGIN"), std::string::npos) << dynamic;
  EXPECT_NE(dynamic.find("Shared library: [libtopoccl.so."), std::string::npos) << dynamic;
}

// The program's copy in another tree has to find that tree's libraries: the build's own may be gone or older.
TEST(Exports, ProgramsFindTheLibrariesBesideThemInAMovedTree) {
  char pattern[] = "/tmp/topoccl-XXXXXX";
  ASSERT_NE(mkdtemp(pattern), nullptr);
  const std::string tree = std::string(pattern) + "/a moved tree";
  outputOf("mkdir -p '" + tree + "/bin' && cp '" EXAMPLE "' '" + tree + "/bin/example'");
  outputOf("ln -s \"$(dirname '" LIBNCCL "')\" '" + tree + "/lib'");
  const std::string found = outputOf("ldd '" + tree + "/bin/example'");
  EXPECT_NE(found.find("libnccl.so.2 => " + tree + "/bin/../lib/libnccl.so.2"), std::string::npos) << found;
  EXPECT_EQ(outputOf("'" + tree + "/bin/example' 2"), "2 ranks, 100000 elements each: all sums are right\n");
  outputOf(std::string("rm -r ") + pattern);
}

}  // namespace
