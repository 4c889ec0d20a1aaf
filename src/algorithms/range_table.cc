#include "algorithms/range_table.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <fstream>
#include <optional>

#include "algorithms/catalog.h"
#include "base/error.h"

namespace topoccl {

namespace {

// Splits at `separator`; empty parts are kept.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> found;
  size_t at = 0;
  while ((at = line.find_first_not_of(" \t\r", at)) != std::string_view::npos) {
    const size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    found.push_back(line.substr(at, end - at));
    at = end;
  }
  return found;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

// ---- settings ----

uint32_t algorithmBits(std::string_view token) {
  for (const AlgorithmRow& row : allReduceAlgorithms())
    if (token == row.name || (row.ncclName[0] != 0 && token == row.ncclName))
      return 1U << static_cast<unsigned>(row.algorithm);
  if (token == "mesh")
    return 1U << static_cast<unsigned>(Algorithm::MeshOneShot) |
           1U << static_cast<unsigned>(Algorithm::MeshTwoShot);
  return 0;
}

bool ncclOnlyAlgorithm(std::string_view token) {
  static constexpr std::string_view kNames[] = {"collnetdirect", "collnetchain", "nvls", "nvlstree", "pat"};
  return std::find(std::begin(kNames), std::end(kNames), token) != std::end(kNames);
}

// Both of NCCL's low-latency protocols are this library's packet: excluding one leaves the other.
constexpr uint32_t kLl = 1, kLl128 = 2, kSimple = 4;

uint32_t protocolNames(std::string_view token) {
  if (token == "packet") return kLl | kLl128;
  if (token == "ll") return kLl;
  if (token == "ll128") return kLl128;
  if (token == "bulk" || token == "simple") return kSimple;
  return 0;
}

uint32_t protocolBits(uint32_t names) {
  return ((names & (kLl | kLl128)) != 0 ? 1U << static_cast<unsigned>(Protocol::Packet) : 0) |
         ((names & kSimple) != 0 ? 1U << static_cast<unsigned>(Protocol::Bulk) : 0);
}

bool knownCollective(std::string_view text) {
  static constexpr std::string_view kNames[] = {"broadcast", "reduce", "allgather", "reducescatter",
                                                "allreduce"};
  return std::find(std::begin(kNames), std::end(kNames), text) != std::end(kNames);
}

struct Grammar {
  const char* setting;
  const char* allowed;
  uint32_t all;
  uint32_t (*bits)(std::string_view);
  bool (*ignored)(std::string_view);  // known elsewhere, names nothing here
};

constexpr Grammar kAlgoGrammar{"NCCL_ALGO",
                               "ring, tree, mesh, mesh_oneshot, mesh_twoshot, halving_doubling (and NCCL's "
                               "names for what is not built here)",
                               (1U << (static_cast<unsigned>(Algorithm::HalvingDoubling) + 1)) - 1,
                               algorithmBits, ncclOnlyAlgorithm};
constexpr Grammar kProtoGrammar{"NCCL_PROTO", "packet (LL, LL128), bulk (Simple)", kLl | kLl128 | kSimple,
                                protocolNames, [](std::string_view) { return false; }};

[[noreturn]] void refuse(const Grammar& grammar, std::string_view value, const std::string& why) {
  throw Error(Code::InvalidArgument, concat(grammar.setting, "=", value, ": ", why, "; allowed are lists of ",
                                            grammar.allowed, ", excluded with ^, per collective with NAME:"));
}

uint32_t parseList(const Grammar& grammar, std::string_view value, std::string_view list) {
  const bool excludes = !list.empty() && list.front() == '^';
  if (excludes) list.remove_prefix(1);
  uint32_t named = 0;
  for (std::string_view token : split(list, ',')) {
    if (token.empty()) continue;  // NCCL skips them too
    const uint32_t bits = grammar.bits(token);
    if (bits == 0 && !grammar.ignored(token)) refuse(grammar, value, concat("unknown name \"", token, "\""));
    named |= bits;
  }
  return excludes ? grammar.all & ~named : named;
}

// What the setting leaves for all-reduce. Sections about other collectives must be well formed, no more: what
// they name may well be something that is not built here.
uint32_t parseSetting(const Grammar& grammar, std::string_view value) {
  if (value.empty()) return grammar.all;
  const std::string text = lower(value);
  uint32_t left = grammar.all;
  bool first = true;
  for (std::string_view section : split(text, ';')) {
    if (section.empty()) continue;
    const size_t colon = section.find(':');
    const bool everywhere = colon == std::string_view::npos;
    const std::string_view collective = everywhere ? "" : section.substr(0, colon);
    if (!everywhere && !knownCollective(collective))
      refuse(grammar, value, concat("unknown collective \"", collective, "\""));
    if (everywhere && !first) refuse(grammar, value, "only the first section may name no collective");
    const uint32_t bits = parseList(grammar, value, everywhere ? section : section.substr(colon + 1));
    if (everywhere || collective == "allreduce") left = bits;
    first = false;
  }
  if (left == 0) refuse(grammar, value, "it leaves nothing this library has");
  return left;
}

// ---- table text ----

struct Line {
  size_t number;
  std::string_view text;

  [[noreturn]] void refuse(std::string_view what, std::string_view expected) const {
    throw Error(Code::InvalidArgument,
                concat("range table, line ", number, ": \"", what, "\" where ", expected, " is expected"));
  }
};

std::optional<uint64_t> parseNumber(std::string_view text, bool sizes) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  std::string_view rest(end, static_cast<size_t>(text.data() + text.size() - end));
  if (rest.empty()) return value;
  if (!sizes || rest.size() != 1) return std::nullopt;
  const size_t unit =
      std::string_view("KMG").find(static_cast<char>(std::toupper(static_cast<unsigned char>(rest[0]))));
  if (unit == std::string_view::npos) return std::nullopt;
  const unsigned shift = 10 * (static_cast<unsigned>(unit) + 1);
  if (value > UINT64_MAX >> shift) return std::nullopt;
  return value << shift;
}

// FIRST-LAST with LAST = * for no limit, given as 0. Of sizes LAST is the end: the range must not be empty.
void parseRange(const Line& line, std::string_view text, bool sizes, uint64_t& first, uint64_t& last) {
  const size_t dash = text.find('-');
  const char* const expected =
      sizes ? "bytes FIRST-END, e.g. 0-32K or 4M-*" : "ranks FIRST-LAST, e.g. 2-8 or 9-*";
  if (dash == std::string_view::npos) line.refuse(text, expected);
  const auto low = parseNumber(text.substr(0, dash), sizes);
  const std::string_view high = text.substr(dash + 1);
  const auto top = high == "*" ? std::optional<uint64_t>(0) : parseNumber(high, sizes);
  if (!low || !top || (high != "*" && (sizes ? *top <= *low : *top == 0 || *top < *low)))
    line.refuse(text, expected);
  first = *low;
  last = *top;
}

Choice parseChoice(const Line& line, std::string_view text) {
  static constexpr const char* kExpected = "ALGORITHM/PROTOCOL/CHANNELS, e.g. ring/packet/1";
  const auto parts = split(text, '/');
  if (parts.size() != 3) line.refuse(text, kExpected);
  Choice choice;
  const uint32_t algorithm = algorithmBits(parts[0]);
  const uint32_t protocol = protocolBits(protocolNames(parts[1]));
  const auto channels = parseNumber(parts[2], false);
  if (std::popcount(algorithm) != 1 || protocol == 0 || !channels || *channels < 1 || *channels > 64)
    line.refuse(text, kExpected);
  choice.algorithm = static_cast<Algorithm>(std::countr_zero(algorithm));
  choice.protocol = static_cast<Protocol>(std::countr_zero(protocol));
  choice.channels = static_cast<int>(*channels);
  return choice;
}

RangeTable::Row parseRow(const Line& line, const std::vector<std::string_view>& fields) {
  if (fields.size() < 4) line.refuse(line.text, "COLLECTIVE RANKS BYTES CHOICE...");
  RangeTable::Row row;
  if (fields[0] != name(Collective::AllReduce)) line.refuse(fields[0], "a collective (all_reduce)");
  uint64_t first = 0, last = 0;
  parseRange(line, fields[1], false, first, last);
  if (first < 1 || first > INT32_MAX || last > INT32_MAX) line.refuse(fields[1], "ranks from 1");
  row.minRanks = static_cast<int>(first);
  row.maxRanks = static_cast<int>(last);
  parseRange(line, fields[2], true, row.minBytes, row.endBytes);
  for (size_t i = 3; i < fields.size(); ++i) row.choices.push_back(parseChoice(line, fields[i]));
  return row;
}

std::string printBytes(uint64_t bytes) {
  static constexpr std::string_view kUnits = "KMG";
  size_t unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? concat(bytes) : concat(bytes, kUnits[unit - 1]);
}

constexpr std::string_view kBuiltIn = R"(
all_reduce 1-1 0-*      mesh_oneshot/packet/1
all_reduce 2-2 0-64K    mesh_oneshot/packet/1 mesh_twoshot/packet/1 ring/packet/1
all_reduce 3-8 0-16K    mesh_oneshot/packet/1 mesh_twoshot/packet/1 ring/packet/1
all_reduce 9-* 0-4K     mesh_oneshot/packet/1 mesh_twoshot/packet/1 ring/packet/1
all_reduce 2-* 0-*      mesh_twoshot/packet/1 ring/packet/1
)";

}  // namespace

bool ChoiceFilter::allows(const Choice& choice) const {
  return (algorithms >> static_cast<unsigned>(choice.algorithm) & 1) != 0 &&
         (protocols >> static_cast<unsigned>(choice.protocol) & 1) != 0;
}

ChoiceFilter parseFilter(Collective, std::string_view algo, std::string_view proto) {
  return {parseSetting(kAlgoGrammar, algo), protocolBits(parseSetting(kProtoGrammar, proto))};
}

RangeTable RangeTable::builtIn() {
  return parse(kBuiltIn);
}

RangeTable RangeTable::parse(std::string_view text) {
  RangeTable table;
  size_t number = 0;
  for (std::string_view whole : split(text, '\n')) {
    const Line line{++number, whole.substr(0, whole.find('#'))};
    const auto fields = words(line.text);
    if (!fields.empty()) table.rows_.push_back(parseRow(line, fields));
  }
  return table;
}

RangeTable RangeTable::load(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  char buffer[4096];
  while (file.read(buffer, sizeof buffer) || file.gcount() > 0)
    text.append(buffer, static_cast<size_t>(file.gcount()));
  if (!file.is_open() || file.bad())
    throw Error(Code::SystemError,
                concat("TOPOCCL_RANGE_TABLE=", path, ": cannot read a range table from this file"));
  return parse(text);
}

std::string RangeTable::print() const {
  std::string text = "# collective ranks bytes choices: algorithm/protocol/channels, best first\n";
  for (const Row& row : rows_) {
    text +=
        concat(name(row.collective), ' ', row.minRanks, '-', row.maxRanks == 0 ? "*" : concat(row.maxRanks),
               ' ', printBytes(row.minBytes), '-', row.endBytes == 0 ? "*" : printBytes(row.endBytes));
    for (const Choice& choice : row.choices)
      text += concat(' ', name(choice.algorithm), '/', name(choice.protocol), '/', choice.channels);
    text += '\n';
  }
  return text;
}

// FNV-1a (Fowler, Noll, Vo) over the printed form.
uint64_t RangeTable::hash() const {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : print()) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

Choice RangeTable::pick(Collective collective, int ranks, uint64_t bytes, const ChoiceFilter& filter) const {
  const auto usable = [&](const Choice& choice) {
    return filter.allows(choice) && ranks <= row(choice.algorithm).maxRanks;
  };
  for (const Row& row : rows_) {
    const bool matches = row.collective == collective && ranks >= row.minRanks &&
                         (row.maxRanks == 0 || ranks <= row.maxRanks) && bytes >= row.minBytes &&
                         (row.endBytes == 0 || bytes < row.endBytes);
    if (!matches) continue;
    for (const Choice& choice : row.choices)
      if (usable(choice)) return choice;
    break;
  }
  for (const AlgorithmRow& algorithm : allReduceAlgorithms())
    for (const Protocol protocol : {Protocol::Packet, Protocol::Bulk})
      if (usable({algorithm.algorithm, protocol, 1})) return {algorithm.algorithm, protocol, 1};
  throw Error(Code::InvalidUsage,
              concat("no algorithm that NCCL_ALGO and NCCL_PROTO allow takes ", ranks, " ranks"));
}

}  // namespace topoccl
