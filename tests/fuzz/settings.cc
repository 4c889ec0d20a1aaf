// Texts that a person or a job script sets: every variable of the environment, and the grammars behind some
// of them. The first byte chooses, the rest is the text.
//
// Never: a crash, a value outside its bounds, an error that is not an InvalidArgument, or a range table that
// chooses something else once it is printed and parsed again.
#include <arpa/inet.h>

#include <algorithm>
#include <optional>
#include <string>

#include "algorithms/catalog.h"
#include "algorithms/range_table.h"
#include "base/interfaces.h"
#include "base/logging.h"
#include "base/settings.h"
#include "bootstrap/unique_id.h"
#include "fuzz.h"

namespace topoccl::fuzz {
namespace {

// None where nothing that is allowed takes that many ranks.
std::optional<Choice> pick(const RangeTable& table, Collective collective, int ranks, uint64_t bytes,
                           const ChoiceFilter& filter) {
  try {
    const Choice choice = table.pick(collective, ranks, bytes, filter);
    require(filter.allows(choice), "a choice that is allowed");
    require(ranks <= row(collective, choice.algorithm).maxRanks, "an algorithm that takes that many ranks");
    require(choice.channels >= 1 && choice.channels <= 64, "channels in range");
    return choice;
  } catch (const Error& error) {
    require(error.code() == Code::InvalidUsage, "the settings leave nothing");
    return std::nullopt;
  }
}

void rangeTable(const std::string& text) {
  const RangeTable table = RangeTable::parse(text);
  const RangeTable again = RangeTable::parse(table.print());
  require(again.rows() == table.rows() && again.hash() == table.hash(),
          "the same when printed and parsed again");
  for (int i = 0; i < kCollectives; ++i)
    for (const int ranks : {1, 3, INT32_MAX})
      for (const uint64_t bytes : {uint64_t{0}, uint64_t{5000}, UINT64_MAX}) {
        const auto collective = static_cast<Collective>(i);
        require(pick(again, collective, ranks, bytes, {}) == pick(table, collective, ranks, bytes, {}),
                "the same choice");
      }
}

// "NCCL_ALGO's text", a zero byte, "NCCL_PROTO's text"; applied as a communicator does it.
void filters(const std::string& text) {
  const size_t end = std::min(text.find('\0'), text.size());
  const std::string algo = text.substr(0, end), proto = text.substr(std::min(end + 1, text.size()));
  static const RangeTable kBuiltIn = RangeTable::builtIn();
  for (int i = 0; i < kCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    const ChoiceFilter filter = parseFilter(collective, algo, proto);
    require((filter.algorithms & algorithmsOf(collective)) != 0 && filter.protocols != 0,
            "something is left");
    pick(kBuiltIn, collective, 3, 5000, filter);
  }
}

// The variable that the text's first byte names has the rest as its value.
void variables(const std::string& text) {
  if (text.empty()) return;
  const SettingRow& row = settingRows()[static_cast<uint8_t>(text[0]) % settingRows().size()];
  std::string value = text.substr(1).c_str();
  const Environment environment = [&](const char* name) -> const char* {
    return std::string_view(name) == row.name ? value.c_str() : nullptr;
  };
  require(settingsSet(environment).size() == (value.empty() ? 0 : 1), "one line for what is set");
  const Settings settings = readSettings(environment);
  require(settings.initTimeout.count() > 0 && settings.collectiveTimeout.count() >= 0,
          "times that can be waited");
  if (const auto* number = std::get_if<int64_t Settings::*>(&row.field))
    require(value.empty() || (settings.*(*number) >= row.low && settings.*(*number) <= row.high),
            "within bounds");
  const std::string printed = printValue(settings, row);
  if (printed == "(hidden)") return;
  value = printed;
  require(printValue(readSettings(environment), row) == printed, "the same when printed and read again");
}

void interfaces(const std::string& text) {
  std::vector<NetworkInterface> all;
  for (const char* name : {"lo", "eth0", "docker0", "ib1", "eth1"})
    all.push_back({name, SocketAddress::fromBytes(std::string("\x7f\0\0\1", 4), 0)});
  const std::vector<NetworkInterface> chosen = chooseInterfaces(all, text);
  require(!chosen.empty() && chosen.size() <= all.size(), "some of those that there are");
}

void logOptions(const std::string& text) {
  const LogOptions options = parseLogOptions("INFO", text, text);
  require(options.level == Level::Info, "the level that was asked for");
  expandLogFile(text);
}

// Only addresses in figures: names would be looked up in the network.
void commId(const std::string& text) {
  const size_t colon = text.rfind(':');
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  in6_addr ignored;
  if (::inet_pton(AF_INET, host.c_str(), &ignored) != 1 && ::inet_pton(AF_INET6, host.c_str(), &ignored) != 1)
    return;
  Settings settings;
  settings.commId = text;
  const Rendezvous rendezvous = decodeUniqueId(uniqueIdFromCommId(settings));
  require(rendezvous.fromCommId && rendezvous.address.port() != 0, "an id that says where");
}

}  // namespace
}  // namespace topoccl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace topoccl::fuzz;
  constexpr void (*kGrammars[])(const std::string&) = {rangeTable, filters,    variables,
                                                       interfaces, logOptions, commId};
  if (size == 0) return 0;
  try {
    kGrammars[data[0] % std::size(kGrammars)](std::string(inputOf(data + 1, size - 1)));
  } catch (const topoccl::Error& error) {
    require(error.code() == topoccl::Code::InvalidArgument, "bad text is an argument's fault");
  }
  return 0;
}
