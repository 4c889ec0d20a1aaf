// The range table as text and as a choice, and the settings that restrict it.
#include "algorithms/range_table.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <fstream>
#include <functional>
#include <random>
#include <string>

#include "algorithms/catalog.h"
#include "base/error.h"

namespace topoccl::test {
namespace {

constexpr Choice kOneShot{Algorithm::MeshOneShot, Protocol::Packet, 1};
constexpr Choice kTwoShot{Algorithm::MeshTwoShot, Protocol::Packet, 1};
constexpr Choice kRing{Algorithm::Ring, Protocol::Packet, 1};
constexpr Choice kTree{Algorithm::Tree, Protocol::Bulk, 4};

// The message of the error of that code that `function` throws; empty without one.
std::string thrownBy(Code code, const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "";
}

void expectContains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << '"' << text << "\" lacks \"" << part << '"';
}

ChoiceFilter filter(std::string_view algo, std::string_view proto = "") {
  return parseFilter(Collective::AllReduce, algo, proto);
}

Choice pick(const RangeTable& table, int ranks, uint64_t bytes, const ChoiceFilter& allowed = {}) {
  return table.pick(Collective::AllReduce, ranks, bytes, allowed);
}

// ---- text ----

TEST(RangeTableText, PrintingAndParsingAreInverse) {
  const RangeTable tables[] = {
      RangeTable::builtIn(), RangeTable::parse(""), RangeTable::parse("all_reduce 1-* 0-* ring/packet/1"),
      RangeTable::parse(
          "# nothing but words\n\n all_reduce\t2-8 1-1023   tree/bulk/64 ring/simple/2 # why\r\n"
          "AllReduce 9-2147483647 1K-3M Halving_Doubling/LL128/1\n"
          "all_reduce 3-3 17179869183G-18446744073709551615 mesh_oneshot/packet/1")};
  for (const RangeTable& table : tables) {
    const std::string text = table.print();
    const RangeTable again = RangeTable::parse(text);
    EXPECT_EQ(again.rows(), table.rows()) << text;
    EXPECT_EQ(again.print(), text);
    EXPECT_EQ(again.hash(), table.hash());
  }
}

TEST(RangeTableText, RowsSayWhatTheyMean) {
  const RangeTable table = RangeTable::parse(
      "all_reduce 2-8 1K-3M tree/bulk/4 ring/ll/1\nall_reduce 9-* 0-*"
      " mesh_twoshot/simple/64");
  ASSERT_EQ(table.rows().size(), 2U);
  EXPECT_EQ(table.rows()[0].minRanks, 2);
  EXPECT_EQ(table.rows()[0].maxRanks, 8);
  EXPECT_EQ(table.rows()[0].minBytes, 1024U);
  EXPECT_EQ(table.rows()[0].endBytes, uint64_t{3} << 20);
  EXPECT_EQ(table.rows()[0].choices, (std::vector<Choice>{kTree, kRing}));
  EXPECT_EQ(table.rows()[1].maxRanks, 0);
  EXPECT_EQ(table.rows()[1].endBytes, 0U);
  EXPECT_EQ(table.rows()[1].choices[0], (Choice{Algorithm::MeshTwoShot, Protocol::Bulk, 64}));
}

TEST(RangeTableText, AnyDifferenceChangesTheHash) {
  const auto hashOf = [](const std::string& text) { return RangeTable::parse(text).hash(); };
  const uint64_t hash = hashOf("all_reduce 2-8 0-32K ring/packet/1");
  EXPECT_EQ(hash, hashOf("  all_reduce 2-8 0-32768 ring/ll/1 # the same, spelled otherwise"));
  for (const char* other : {"", "all_reduce 1-8 0-32K ring/packet/1", "all_reduce 2-9 0-32K ring/packet/1",
                            "all_reduce 2-* 0-32K ring/packet/1", "all_reduce 2-8 1-32K ring/packet/1",
                            "all_reduce 2-8 0-33K ring/packet/1", "all_reduce 2-8 0-32K tree/packet/1",
                            "all_reduce 2-8 0-32K ring/bulk/1", "all_reduce 2-8 0-32K ring/packet/2",
                            "all_reduce 2-8 0-32K ring/packet/1 ring/packet/1",
                            "all_reduce 2-8 0-32K ring/packet/1\nall_reduce 2-8 0-32K ring/packet/1"})
    EXPECT_NE(hash, hashOf(other)) << other;
}

// A line with a fault, and what its error says.
struct BadLine {
  const char* line;
  const char* part;
  const char* value;
  const char* allowed;
};
constexpr const char* kRow = "COLLECTIVE RANKS BYTES CHOICE...";
constexpr const char* kNames = "one of all_reduce, broadcast, reduce, all_gather, reduce_scatter, gather, ";
constexpr const char* kRanks = "FIRST-LAST or FIRST-*, from 1 to 2147483647";
constexpr const char* kBytes = "FIRST-END or FIRST-*, without END itself";
constexpr const char* kChoice = "ALGORITHM/PROTOCOL/CHANNELS";
constexpr const char* kOfAllReduce =
    "one of mesh_oneshot, mesh_twoshot, ring, tree, halving_doubling, which all_reduce has";
constexpr const char* kOfScatter = "one of mesh_oneshot, tree, which scatter has";
constexpr const char* kProtocols = "packet (LL, LL128) or bulk (Simple)";
constexpr const char* kChannels = "a number from 1 to 64";

TEST(RangeTableText, ErrorsNameOriginLinePartValueAndWhatIsAllowed) {
  const BadLine bads[] = {
      {"all_reduce 2-8 0-1K", "row", "all_reduce 2-8 0-1K", kRow},
      {"all_reduce", "row", "all_reduce", kRow},
      {"allreduces 2-8 0-1K ring/packet/1", "collective", "allreduces", kNames},
      {"all_reduce 2 0-1K ring/packet/1", "ranks", "2", kRanks},
      {"all_reduce 8-2 0-1K ring/packet/1", "ranks", "8-2", kRanks},
      {"all_reduce 2-0 0-1K ring/packet/1", "ranks", "2-0", kRanks},
      {"all_reduce 2K-4K 0-1K ring/packet/1", "ranks", "2K-4K", kRanks},
      {"all_reduce *-4 0-1K ring/packet/1", "ranks", "*-4", kRanks},
      {"all_reduce -4 0-1K ring/packet/1", "ranks", "-4", kRanks},
      {"all_reduce 2- 0-1K ring/packet/1", "ranks", "2-", kRanks},
      {"all_reduce 0-4 0-1K ring/packet/1", "ranks", "0-4", kRanks},
      {"all_reduce 0-* 0-1K ring/packet/1", "ranks", "0-*", kRanks},
      {"all_reduce 1-2147483648 0-1K ring/packet/1", "ranks", "1-2147483648", kRanks},
      {"all_reduce 1-99999999999999999999 0-1K ring/packet/1", "ranks", "1-99999999999999999999", kRanks},
      {"all_reduce 2-8 1K ring/packet/1", "bytes", "1K", kBytes},
      {"all_reduce 2-8 1K-1K ring/packet/1", "bytes", "1K-1K", kBytes},
      {"all_reduce 2-8 2K-1K ring/packet/1", "bytes", "2K-1K", kBytes},
      {"all_reduce 2-8 0-0 ring/packet/1", "bytes", "0-0", kBytes},
      {"all_reduce 2-8 0-1T ring/packet/1", "bytes", "0-1T", kBytes},
      {"all_reduce 2-8 0-1KB ring/packet/1", "bytes", "0-1KB", kBytes},
      {"all_reduce 2-8 0-17179869184G ring/packet/1", "bytes", "0-17179869184G", kBytes},
      {"all_reduce 2-8 0-1K ring", "choice", "ring", kChoice},
      {"all_reduce 2-8 0-1K ring/packet", "choice", "ring/packet", kChoice},
      {"all_reduce 2-8 0-1K ring/packet/1/1", "choice", "ring/packet/1/1", kChoice},
      {"all_reduce 2-8 0-1K ring/packet/1 tree", "choice", "tree", kChoice},
      {"all_reduce 2-8 0-1K rings/packet/1", "algorithm", "rings\" in \"rings/packet/1", kOfAllReduce},
      {"all_reduce 2-8 0-1K mesh/packet/1", "algorithm", "mesh\" in \"mesh/packet/1", kOfAllReduce},
      {"all_reduce 2-8 0-1K nvls/packet/1", "algorithm", "nvls\" in \"nvls/packet/1", kOfAllReduce},
      {"scatter 2-8 0-1K ring/packet/1", "algorithm", "ring\" in \"ring/packet/1", kOfScatter},
      {"all_reduce 2-8 0-1K ring/packets/1", "protocol", "packets\" in \"ring/packets/1", kProtocols},
      {"all_reduce 2-8 0-1K ring//1", "protocol", "\" in \"ring//1", kProtocols},
      {"all_reduce 2-8 0-1K ring/packet/0", "channels", "0\" in \"ring/packet/0", kChannels},
      {"all_reduce 2-8 0-1K ring/packet/65", "channels", "65\" in \"ring/packet/65", kChannels},
      {"all_reduce 2-8 0-1K ring/packet/x", "channels", "x\" in \"ring/packet/x", kChannels},
      {"all_reduce 2-8 0-1K ring/packet/", "channels", "\" in \"ring/packet/", kChannels},
  };
  for (const BadLine& bad : bads) {
    const std::string text = concat("# a comment\nall_reduce 1-1 0-* ring/packet/1\n", bad.line, "\n");
    const std::string says =
        concat(", line 3: ", bad.part, " is \"", bad.value, "\"; it must be ", bad.allowed);
    expectContains(thrownBy(Code::InvalidArgument, [&] { RangeTable::parse(text); }),
                   concat("TOPOCCL_RANGE_TABLE", says));
    expectContains(thrownBy(Code::InvalidArgument, [&] { RangeTable::parse(text, "here"); }),
                   concat("here", says));
  }
}

TEST(RangeTableText, RandomBytesNeverCrash) {
  std::mt19937 random(99);
  const std::string start = RangeTable::builtIn().print();
  const std::string alphabet = "0123456789-*/KMG# \n\tringtreemsh_allrduce^:;,\xff";
  for (int round = 0; round < 3000; ++round) {
    std::string text = round % 3 == 0 ? "" : start;
    for (uint32_t edit = 0; edit < 1 + random() % 40; ++edit) {
      const size_t at = random() % (text.size() + 1);
      const char c = round % 2 == 0 ? alphabet[random() % alphabet.size()] : static_cast<char>(random());
      if (at < text.size() && random() % 2 == 0)
        text[at] = c;
      else
        text.insert(at, 1, c);
    }
    const std::string error = thrownBy(Code::InvalidArgument, [&] {
      const RangeTable table = RangeTable::parse(text);
      EXPECT_EQ(RangeTable::parse(table.print()).rows(), table.rows());
    });
    thrownBy(Code::InvalidArgument, [&] { filter(text, text); });
  }
}

TEST(RangeTableText, ComesFromFiles) {
  const std::string path = testing::TempDir() + concat("range_table_", ::getpid());
  std::ofstream(path) << "all_reduce 2-* 0-* tree/bulk/4\n";
  EXPECT_EQ(RangeTable::load(path).rows(), RangeTable::parse("all_reduce 2-* 0-* tree/bulk/4").rows());
  std::ofstream(path) << "nonsense\n";
  expectContains(thrownBy(Code::InvalidArgument, [&] { RangeTable::load(path); }),
                 concat("TOPOCCL_RANGE_TABLE=", path, ", line 1: row is \"nonsense\""));
  std::remove(path.c_str());
  expectContains(thrownBy(Code::SystemError, [&] { RangeTable::load(path); }), "TOPOCCL_RANGE_TABLE=" + path);
  expectContains(thrownBy(Code::SystemError, [&] { RangeTable::load("/"); }), "TOPOCCL_RANGE_TABLE=/");
  expectContains(thrownBy(Code::SystemError, [&] { RangeTable::load("foo"); }), "taken for a path");
  for (const char* endless : {"/", "/dev/zero", "/dev/null"})
    expectContains(thrownBy(Code::SystemError, [&] { RangeTable::load(endless); }), "it is no regular file");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  expectContains(thrownBy(Code::SystemError, [&] { RangeTable::load(path); }), "it is no regular file");
  ::unlink(path.c_str());
  std::ofstream(path) << std::string((1 << 20) + 1, '#');
  expectContains(thrownBy(Code::SystemError, [&] { RangeTable::load(path); }),
                 "it has more than 1048576 bytes");
  ::unlink(path.c_str());
}

// ---- choices ----

TEST(RangeTablePick, RangesIncludeFirstAndExcludeEnd) {
  const RangeTable table = RangeTable::parse(
      "all_reduce 2-4 0-1K mesh_oneshot/packet/1\n"
      "all_reduce 2-4 1K-* mesh_twoshot/packet/1\n"
      "all_reduce 5-* 7-8 tree/bulk/4\n"
      "all_reduce 1-* 0-* ring/packet/1\n");
  EXPECT_EQ(pick(table, 2, 0), kOneShot);
  EXPECT_EQ(pick(table, 4, 1023), kOneShot);
  EXPECT_EQ(pick(table, 4, 1024), kTwoShot);
  EXPECT_EQ(pick(table, 4, UINT64_MAX), kTwoShot);
  EXPECT_EQ(pick(table, 1, 0), kRing);
  EXPECT_EQ(pick(table, 5, 6), kRing);
  EXPECT_EQ(pick(table, 5, 7), kTree);
  EXPECT_EQ(pick(table, 5, 8), kRing);
  EXPECT_EQ(pick(table, INT_MAX, 7), kTree);
}

TEST(RangeTablePick, TheFirstRowThatMatchesDecides) {
  const RangeTable table =
      RangeTable::parse("all_reduce 2-* 0-* mesh_oneshot/packet/1\nall_reduce 2-* 0-* ring/packet/1\n");
  EXPECT_EQ(pick(table, 2, 0), kOneShot);
  // Its choices are not allowed: anything allowed serves, but not the next row's.
  EXPECT_EQ(pick(table, 2, 0, filter("tree,ring", "simple")), (Choice{Algorithm::Ring, Protocol::Bulk, 1}));
}

TEST(RangeTablePick, FallsBackAlongItsChoices) {
  const RangeTable table =
      RangeTable::parse("all_reduce 1-* 0-* mesh_oneshot/packet/1 ring/packet/1 tree/bulk/4\n");
  EXPECT_EQ(pick(table, 8, 0), kOneShot);
  EXPECT_EQ(pick(table, 8, 0, filter("^mesh")), kRing);
  EXPECT_EQ(pick(table, 8, 0, filter("tree")), kTree);
  EXPECT_EQ(pick(table, 8, 0, filter("", "simple")), kTree);
  const int many = row(Collective::AllReduce, Algorithm::MeshOneShot).maxRanks + 1;
  EXPECT_EQ(pick(table, many - 1, 0), kOneShot);
  EXPECT_EQ(pick(table, many, 0), kRing) << "more ranks than the first choice takes";
}

TEST(RangeTablePick, AnEmptyTableStillFindsSomething) {
  const RangeTable table = RangeTable::parse("");
  for (const int ranks : {1, 2, 1000, 1024})
    for (const char* algo : {"", "ring", "tree", "halving_doubling"})
      for (const char* proto : {"", "LL", "Simple"}) {
        const ChoiceFilter allowed = filter(algo, proto);
        const Choice choice = pick(table, ranks, 100, allowed);
        EXPECT_TRUE(allowed.allows(choice));
        EXPECT_LE(ranks, row(Collective::AllReduce, choice.algorithm).maxRanks);
      }
}

TEST(RangeTablePick, NothingForThatManyRanksIsAnError) {
  const int many = row(Collective::AllReduce, Algorithm::MeshOneShot).maxRanks + 1;
  const std::string error =
      thrownBy(Code::InvalidUsage, [&] { pick(RangeTable::builtIn(), many, 0, filter("mesh")); });
  expectContains(error, "NCCL_ALGO");
  expectContains(error, concat(many, " ranks"));
}

TEST(RangeTablePick, TheBuiltInTableCoversEverything) {
  const RangeTable table = RangeTable::builtIn();
  for (const int ranks : {1, 2, 3, 8, 9, 1024, 1025, 65536})
    for (uint64_t bytes = 1; bytes != 0; bytes <<= 1)
      for (const uint64_t near : {bytes - 1, bytes, bytes + 1})
        EXPECT_LE(ranks, row(Collective::AllReduce, pick(table, ranks, near).algorithm).maxRanks);
}

// ---- settings ----

uint32_t bits(std::initializer_list<Algorithm> algorithms) {
  uint32_t result = 0;
  for (const Algorithm algorithm : algorithms) result |= 1U << static_cast<unsigned>(algorithm);
  return result;
}

constexpr uint32_t kPacketBit = 1U << static_cast<unsigned>(Protocol::Packet);
constexpr uint32_t kBulkBit = 1U << static_cast<unsigned>(Protocol::Bulk);
const uint32_t kAll = bits({Algorithm::Ring, Algorithm::Tree, Algorithm::MeshOneShot, Algorithm::MeshTwoShot,
                            Algorithm::HalvingDoubling});

TEST(ChoiceFilterText, AlgorithmsAsNcclWritesThem) {
  const uint32_t ring = bits({Algorithm::Ring}), tree = bits({Algorithm::Tree});
  const uint32_t mesh = bits({Algorithm::MeshOneShot, Algorithm::MeshTwoShot});
  const std::pair<const char*, uint32_t> rows[] = {
      {"", kAll},
      {"ring", ring},
      {"Ring", ring},
      {"RING,tReE", ring | tree},
      {"tree,ring,tree", ring | tree},
      {"mesh", mesh},
      {"mesh_oneshot", bits({Algorithm::MeshOneShot})},
      {"halving_doubling", bits({Algorithm::HalvingDoubling})},
      {"^ring", kAll & ~ring},
      {"^ring,mesh", kAll & ~ring & ~mesh},
      {"^NVLS,NVLSTree,CollnetDirect,CollnetChain,PAT", kAll},
      {"ring,nvls", ring},
      {"ring,", ring},
      {",ring,,tree", ring | tree},
      {"ring;", ring},
      {"allreduce:ring", ring},
      {"AllReduce:^ring", kAll & ~ring},
      {"tree;allreduce:ring", ring},
      {"broadcast:tree", kAll},
      {"allgather:pat;reducescatter:pat", kAll},
      {"allgather:pat;allreduce:ring", ring},
      {"nvls;allreduce:ring", ring},
      {"allreduce:tree;reduce:ring;allreduce:ring", ring},
      {"tree;ALL_REDUCE:ring;reduce_scatter:ring", ring},
  };
  for (const auto& [text, expected] : rows) EXPECT_EQ(filter(text).algorithms, expected) << text;
}

TEST(ChoiceFilterText, ProtocolsAsNcclWritesThem) {
  const std::pair<const char*, uint32_t> rows[] = {
      {"", kPacketBit | kBulkBit},
      {"LL", kPacketBit},
      {"LL128", kPacketBit},
      {"Simple", kBulkBit},
      {"packet", kPacketBit},
      {"BULK", kBulkBit},
      {"LL,Simple", 3},
      {"^Simple", kPacketBit},
      {"^LL,LL128", kBulkBit},
      {"^LL128", 3},
      {"^LL", 3},
      {"^packet", kBulkBit},
      {"allreduce:LL", kPacketBit},
      {"LL;allreduce:simple", kBulkBit},
      {"broadcast:LL", 3},
  };
  for (const auto& [text, expected] : rows) EXPECT_EQ(filter("", text).protocols, expected) << text;
}

TEST(ChoiceFilterText, ErrorsNameSettingValueAndWhatIsAllowed) {
  struct Bad {
    const char* text;
    const char* why;
  };
  for (const Bad& bad :
       {Bad{"rings", "unknown name \"rings\""}, Bad{"ring,Foo", "unknown name \"foo\""},
        Bad{"^foo", "unknown name \"foo\""}, Bad{"ring ", "unknown name \"ring \""},
        Bad{"^ring,^tree", "unknown name \"^tree\""},
        Bad{"everywhere:ring",
            "unknown collective \"everywhere\": it must be one of all_reduce, broadcast, "},
        Bad{":ring", "unknown collective \"\""}, Bad{"broadcast:foo", "unknown name \"foo\""},
        Bad{"ring;tree", "\"tree\" must say which collective it is about"},
        Bad{"allreduce:ring;tree", "\"tree\" must say which collective it is about"},
        Bad{"nvls", "leaves nothing for all_reduce, which has mesh_oneshot, mesh_twoshot, ring, tree"},
        Bad{"allreduce:pat,nvls", "leaves nothing"},
        Bad{"^ring,tree,mesh,halving_doubling", "leaves nothing"}, Bad{",", "leaves nothing"},
        Bad{"ring;allreduce:", "leaves nothing"}}) {
    const std::string error = thrownBy(Code::InvalidArgument, [&] { filter(bad.text); });
    expectContains(error, concat("NCCL_ALGO=", bad.text));
    expectContains(error, bad.why);
    expectContains(error,
                   "allowed: a list, separated by commas, of ring, tree, mesh, mesh_oneshot, mesh_twoshot, "
                   "halving_doubling");
    expectContains(error, "COLLECTIVE:LIST is about one collective; semicolons separate such entries");
  }
  for (const char* text : {"foo", "LL,foo", "ring", "LL;Simple", "foo:LL", "^LL,LL128,Simple"}) {
    const std::string error = thrownBy(Code::InvalidArgument, [&] { filter("", text); });
    expectContains(error, concat("NCCL_PROTO=", text));
    expectContains(error, "of packet (LL, LL128), bulk (Simple)");
  }
}

}  // namespace
}  // namespace topoccl::test
