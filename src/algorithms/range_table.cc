#include "algorithms/range_table.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <optional>

#include "algorithms/catalog.h"
#include "algorithms/words.h"
#include "base/error.h"
#include "base/system_file.h"

namespace topoccl {

namespace {

constexpr uint64_t kMostChannels = 64;

struct Line {
  std::string_view origin;
  size_t number;
  std::string_view text;

  // `part`: "algorithm", "ranks", ...; `within` "" where `what` is all of a field.
  [[noreturn]] void refuse(std::string_view part, std::string_view what, std::string_view allowed,
                           std::string_view within = "") const {
    throw Error(Code::InvalidArgument,
                concat(origin, ", line ", number, ": ", part, " is \"", what, '"',
                       within.empty() ? "" : concat(" in \"", within, '"'), "; it must be ", allowed));
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

// FIRST-LAST with LAST = * for no limit, given as 0.
struct Range {
  uint64_t first = 0, last = 0;
};

std::optional<Range> parseRange(std::string_view text, bool sizes) {
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = parseNumber(text.substr(0, dash), sizes);
  const std::string_view end = text.substr(dash + 1);
  if (!first || end == "*") return first ? std::optional<Range>({*first, 0}) : std::nullopt;
  const auto last = parseNumber(end, sizes);
  if (!last || *last == 0 || *last < *first) return std::nullopt;
  return Range{*first, *last};
}

Range parseRanks(const Line& line, std::string_view text) {
  const auto range = parseRange(text, false);
  if (!range || range->first < 1 || range->first > INT32_MAX || range->last > INT32_MAX)
    line.refuse(
        "ranks", text,
        concat("FIRST-LAST or FIRST-*, from 1 to ", INT32_MAX, " with both included, e.g. 2-8 or 9-*"));
  return *range;
}

Range parseBytes(const Line& line, std::string_view text) {
  const auto range = parseRange(text, true);
  if (!range || (range->last != 0 && range->first == range->last))  // which is the end
    line.refuse("bytes", text,
                "FIRST-END or FIRST-*, without END itself, K, M, G for powers of 1024, e.g. 0-32K or 4M-*");
  return *range;
}

Choice parseChoice(const Line& line, std::string_view text, Collective collective) {
  const auto parts = split(text, '/');
  if (parts.size() != 3) line.refuse("choice", text, "ALGORITHM/PROTOCOL/CHANNELS, e.g. ring/packet/1");
  const uint32_t algorithm = algorithmBits(lower(parts[0]));
  if (std::popcount(algorithm) != 1 || (algorithm & algorithmsOf(collective)) == 0)
    line.refuse("algorithm", parts[0],
                concat("one of ", algorithmNames(collective), ", which ", name(collective), " has"), text);
  const uint32_t protocol = protocolBits(lower(parts[1]));
  if (protocol == 0) line.refuse("protocol", parts[1], "packet (LL, LL128) or bulk (Simple)", text);
  const auto channels = parseNumber(parts[2], false);
  if (!channels || *channels < 1 || *channels > kMostChannels)
    line.refuse("channels", parts[2], concat("a number from 1 to ", kMostChannels), text);
  return {static_cast<Algorithm>(std::countr_zero(algorithm)),
          static_cast<Protocol>(std::countr_zero(protocol)), static_cast<int>(*channels)};
}

RangeTable::Row parseRow(const Line& line, const std::vector<std::string_view>& fields) {
  if (fields.size() < 4)
    line.refuse("row", line.text, "COLLECTIVE RANKS BYTES CHOICE..., e.g. all_reduce 2-* 0-* ring/packet/1");
  RangeTable::Row row;
  const std::optional<Collective> collective = collectiveNamed(fields[0]);
  if (!collective) line.refuse("collective", fields[0], concat("one of ", collectiveNames()));
  row.collective = *collective;
  const Range ranks = parseRanks(line, fields[1]);
  row.minRanks = static_cast<int>(ranks.first);
  row.maxRanks = static_cast<int>(ranks.last);
  const Range bytes = parseBytes(line, fields[2]);
  row.minBytes = bytes.first;
  row.endBytes = bytes.last;
  for (size_t i = 3; i < fields.size(); ++i)
    row.choices.push_back(parseChoice(line, fields[i], row.collective));
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
broadcast 1-* 0-*       mesh_oneshot/packet/1 tree/packet/1
reduce 1-* 0-*          mesh_oneshot/packet/1 tree/packet/1
all_gather 1-* 0-*      mesh_oneshot/packet/1 ring/packet/1
reduce_scatter 1-* 0-*  mesh_oneshot/packet/1 ring/packet/1
gather 1-* 0-*          mesh_oneshot/packet/1
scatter 1-* 0-*         mesh_oneshot/packet/1
all_to_all 1-* 0-*      mesh_oneshot/packet/1
)";

}  // namespace

RangeTable RangeTable::builtIn() {
  return parse(kBuiltIn);
}

RangeTable RangeTable::parse(std::string_view text, std::string_view origin) {
  RangeTable table;
  size_t number = 0;
  for (std::string_view whole : split(text, '\n')) {
    const Line line{origin, ++number, whole.substr(0, whole.find('#'))};
    const auto fields = words(line.text);
    if (!fields.empty()) table.rows_.push_back(parseRow(line, fields));
  }
  return table;
}

RangeTable RangeTable::load(const std::string& path) {
  constexpr size_t kMostBytes = 1 << 20;
  const std::string where = concat("TOPOCCL_RANGE_TABLE=", path);
  std::string text;
  try {
    text = readNamedFile(path, kMostBytes);
  } catch (const Error& error) {
    throw Error(error.code(),
                concat(where, ": cannot read a range table from ", error.what(),
                       " (a value without blanks is taken for a path; docs/algorithms.md describes "
                       "tables)"));
  }
  return parse(text, where);
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
    return filter.allows(choice) && ranks <= row(collective, choice.algorithm).maxRanks;
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
  for (const AlgorithmRow& algorithm : algorithmRows())
    for (const Protocol protocol : {Protocol::Packet, Protocol::Bulk})
      if (algorithm.collective == collective && usable({algorithm.algorithm, protocol, 1}))
        return {algorithm.algorithm, protocol, 1};
  throw Error(Code::InvalidUsage, concat("no algorithm of ", name(collective),
                                         " that NCCL_ALGO and NCCL_PROTO allow takes ", ranks, " ranks"));
}

}  // namespace topoccl
