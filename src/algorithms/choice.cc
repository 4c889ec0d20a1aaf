#include "algorithms/choice.h"

#include <algorithm>
#include <string>

#include "algorithms/catalog.h"
#include "algorithms/words.h"
#include "base/error.h"
#include "base/logging.h"

namespace topoccl {

namespace {

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

struct Grammar {
  const char* setting;
  const char* allowed;
  uint32_t all;
  uint32_t (*bits)(std::string_view);
  bool (*ignored)(std::string_view);  // known elsewhere, names nothing here
  std::string (*has)(Collective);
};

constexpr Grammar kAlgoGrammar{"NCCL_ALGO",
                               "ring, tree, mesh, mesh_oneshot, mesh_twoshot, halving_doubling (and NCCL's "
                               "names of what is not built here)",
                               (1U << kAlgorithms) - 1,
                               algorithmBits,
                               ncclOnlyAlgorithm,
                               algorithmNames};
constexpr Grammar kProtoGrammar{"NCCL_PROTO",
                                "packet (LL, LL128), bulk (Simple)",
                                kLl | kLl128 | kSimple,
                                protocolNames,
                                [](std::string_view) { return false; },
                                [](Collective) { return std::string("packet, bulk"); }};

[[noreturn]] void refuse(const Grammar& grammar, std::string_view value, const std::string& why) {
  throw Error(
      Code::InvalidArgument,
      concat(grammar.setting, "=", value, ": ", why, "; allowed: a list, separated by commas, of ",
             grammar.allowed,
             "; ^LIST allows all others, COLLECTIVE:LIST is about one collective; semicolons separate "
             "such entries, of which only the first may be about all collectives"));
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

// What the setting leaves for `collective`, which has `available`. Sections about other collectives must be
// well formed, no more.
uint32_t parseSetting(const Grammar& grammar, std::string_view value, Collective collective,
                      uint32_t available) {
  if (value.empty()) return grammar.all;
  const std::string text = lower(value);
  uint32_t left = grammar.all;
  bool first = true;
  for (std::string_view section : split(text, ';')) {
    if (section.empty()) continue;
    const size_t colon = section.find(':');
    const bool everywhere = colon == std::string_view::npos;
    const std::string_view about = everywhere ? "" : section.substr(0, colon);
    const std::optional<Collective> named = collectiveNamed(about);
    if (!everywhere && !named)
      refuse(grammar, value,
             concat("unknown collective \"", about, "\": it must be one of ", collectiveNames()));
    if (everywhere && !first)
      refuse(grammar, value, concat("\"", section, "\" must say which collective it is about"));
    const uint32_t bits = parseList(grammar, value, everywhere ? section : section.substr(colon + 1));
    if (everywhere && (bits & available) == 0 && bits != 0) {
      log(Level::Info, Subsystem::Tuning, grammar.setting, "=", value, " names nothing that ",
          name(collective), " has: it is not applied there");
    } else if (everywhere || named == collective) {
      left = bits;
    }
    first = false;
  }
  if ((left & available) == 0)
    refuse(grammar, value,
           concat("it leaves nothing for ", name(collective), ", which has ", grammar.has(collective)));
  return left;
}

uint32_t bitsOfProtocols(uint32_t names) {
  return ((names & (kLl | kLl128)) != 0 ? 1U << static_cast<unsigned>(Protocol::Packet) : 0) |
         ((names & kSimple) != 0 ? 1U << static_cast<unsigned>(Protocol::Bulk) : 0);
}

}  // namespace

bool ChoiceFilter::allows(const Choice& choice) const {
  return (algorithms >> static_cast<unsigned>(choice.algorithm) & 1) != 0 &&
         (protocols >> static_cast<unsigned>(choice.protocol) & 1) != 0;
}

uint32_t algorithmBits(std::string_view word) {
  if (word.empty()) return 0;
  for (unsigned i = 0; i < kAlgorithms; ++i) {
    const auto algorithm = static_cast<Algorithm>(i);
    if (word == name(algorithm) || word == ncclName(algorithm)) return 1U << i;
  }
  if (word == "mesh")
    return 1U << static_cast<unsigned>(Algorithm::MeshOneShot) |
           1U << static_cast<unsigned>(Algorithm::MeshTwoShot);
  return 0;
}

uint32_t protocolBits(std::string_view word) {
  return bitsOfProtocols(protocolNames(word));
}

ChoiceFilter parseFilter(Collective collective, std::string_view algo, std::string_view proto) {
  return {parseSetting(kAlgoGrammar, algo, collective, algorithmsOf(collective)),
          bitsOfProtocols(parseSetting(kProtoGrammar, proto, collective, kProtoGrammar.all))};
}

}  // namespace topoccl
