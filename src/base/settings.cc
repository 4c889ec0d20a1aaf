#include "base/settings.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/fork_safety.h"
#include "base/logging.h"

namespace topoccl {
namespace {

constexpr const char* kSecretName = "TOPOCCL_SECRET";
constexpr int64_t kManyBytes = int64_t{1} << 40;
constexpr int64_t kWeek = int64_t{7} * 24 * 3600 * 1000;  // milliseconds
// A rank's connections share 32 MiB (transport/node_memory.h); two ranks have four of them for what they can
// call without further settings.
constexpr int64_t kMostSlotBytes = int64_t{1} << 20;
constexpr int64_t kMostSlots = 1024;
constexpr int64_t kMostSlotsBytes = int64_t{4} << 20;  // of a connection
constexpr int64_t kMostChannels = 64;                  // as many as NCCL has

bool isSecret(const SettingRow& row) {
  return row.name == std::string(kSecretName);
}

[[noreturn]] void reject(const SettingRow& row, const std::string& text) {
  throw Error(Code::InvalidArgument, concat(row.name, "=", text, " is not valid; allowed: ", row.allowed));
}

int64_t parseNumber(const SettingRow& row, const std::string& text) {
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  const char* first = text.data() + (hex ? 2 : 0);
  const char* last = text.data() + text.size();
  int64_t value = 0;
  const auto [end, error] = std::from_chars(first, last, value, hex ? 16 : 10);
  if (error != std::errc() || end != last || value < row.low || value > row.high) reject(row, text);
  return value;
}

// Seconds, with a fraction if wanted. More than none is a millisecond at least: 0 has meanings of its own.
std::chrono::milliseconds parseSeconds(const SettingRow& row, const std::string& text) {
  double value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  const double milliseconds = value * 1000;
  const bool inside =
      milliseconds >= static_cast<double>(row.low) && milliseconds <= static_cast<double>(row.high);
  if (error != std::errc() || end != last || !inside) reject(row, text);
  return std::chrono::milliseconds(std::max(std::llround(milliseconds), value > 0 ? 1LL : 0LL));
}

bool parseSwitch(const SettingRow& row, const std::string& text) {
  if (text != "0" && text != "1") reject(row, text);
  return text == "1";
}

DeviceChoice parseDevice(const SettingRow& row, const std::string& text) {
  if (text == "auto") return DeviceChoice::Auto;
  if (text == "cpu") return DeviceChoice::Cpu;
  if (text == "cuda") return DeviceChoice::Cuda;
  reject(row, text);
}

struct Assign {
  Settings& settings;
  const SettingRow& row;
  const std::string& text;

  void operator()(std::string Settings::*field) const { settings.*field = text; }
  void operator()(int64_t Settings::*field) const { settings.*field = parseNumber(row, text); }
  void operator()(bool Settings::*field) const { settings.*field = parseSwitch(row, text); }
  void operator()(std::chrono::milliseconds Settings::*field) const {
    settings.*field = parseSeconds(row, text);
  }
  void operator()(DeviceChoice Settings::*field) const { settings.*field = parseDevice(row, text); }
};

struct Print {
  const Settings& settings;

  std::string operator()(std::string Settings::*field) const { return settings.*field; }
  std::string operator()(int64_t Settings::*field) const { return std::to_string(settings.*field); }
  std::string operator()(bool Settings::*field) const { return settings.*field ? "1" : "0"; }
  std::string operator()(std::chrono::milliseconds Settings::*field) const {
    return concat(static_cast<double>((settings.*field).count()) / 1000);
  }
  std::string operator()(DeviceChoice Settings::*field) const {
    static constexpr const char* kNames[] = {"auto", "cpu", "cuda"};
    return kNames[static_cast<int>(settings.*field)];
  }
};

}  // namespace

const std::vector<SettingRow>& settingRows() {
  using S = Settings;
  // Never destroyed, as other threads may init while the process exits.
  static const auto* const rows = new std::vector<SettingRow>{
      {"NCCL_DEBUG", "", "VERSION, WARN, INFO, ABORT, TRACE", "how much to log; nothing when unset", false,
       &S::debug},
      {"NCCL_DEBUG_SUBSYS", "", "comma list of subsystems; ^ inverts",
       "what INFO and TRACE lines to log; unset: INIT,BOOTSTRAP,ENV", false, &S::debugSubsystems},
      {"NCCL_DEBUG_FILE", "", "path; %h host, %p process", "where to log; unset: stderr", false,
       &S::debugFile},
      {"NCCL_ALGO", "", "list of algorithms, see docs/algorithms.md; ^ excludes",
       "algorithms that may be used; unset: all", true, &S::algorithms},
      {"NCCL_PROTO", "", "list of protocols, see docs/algorithms.md; ^ excludes",
       "protocols that may be used; unset: all", true, &S::protocols},
      {"NCCL_SOCKET_IFNAME", "", "comma list of prefixes; ^ excludes, = exact",
       "network interfaces for sockets; unset: ib*, then others, docker*, lo", false, &S::socketInterfaces},
      {"NCCL_COMM_ID", "", "host:port, [IPv6]:port",
       "where rank 0 listens; ids are then made without talking to it", false, &S::commId},
      {kSecretName, "", "any text, the same on all ranks",
       "makes ids from NCCL_COMM_ID hard to guess; see docs/bootstrap.md", false, &S::secret},
      {"NCCL_HOSTID", "", "any text", "ranks with the same value count as one host; unset: found out", false,
       &S::hostId},
      {"NCCL_BUFFSIZE", "4194304", "1 to 2^40", "bytes of a channel's buffer", true, &S::bufferBytes, 1,
       kManyBytes},
      {"TOPOCCL_DEVICE", "auto", "auto, cpu, cuda", "what ranks compute on", false, &S::device},
      {"TOPOCCL_INIT_TIMEOUT", "120", "0.001 to 604800 seconds",
       "how long init and its exchanges wait for other ranks", false, &S::initTimeout, 1, kWeek},
      {"TOPOCCL_COLLECTIVE_TIMEOUT", "0", "0 to 604800 seconds",
       "how long a collective waits for other ranks; 0: for ever", false, &S::collectiveTimeout, 0, kWeek},
      {"TOPOCCL_REPORT_AFTER", "60", "0 to 604800 seconds",
       "how long calls stand still before one report says who waits for whom; 0: never", false,
       &S::reportAfter, 0, kWeek},
      {"TOPOCCL_SPIN", "-1", "-1 to 2^40", "polls before a waiting thread yields; -1: automatic", false,
       &S::spin, -1, kManyBytes},
      {"TOPOCCL_REFERENCES", "1", "0, 1", "ranks of one process read each other's buffers without copies",
       false, &S::references},
      {"TOPOCCL_CMA", "-1", "-1 to 1",
       "processes read each other's large buffers by address: 0 never, 1 always, -1 where it is quicker",
       false, &S::crossMemory, -1, 1},
      {"TOPOCCL_SLOT_BYTES", "0", "0 to 2^20", "bytes of a slot; 0: automatic", true, &S::slotBytes, 0,
       kMostSlotBytes},
      {"TOPOCCL_SLOTS", "0", "0 to 1024", "slots of a connection; 0: automatic", true, &S::slots, 0,
       kMostSlots},
      {"TOPOCCL_CHANNELS", "0", "0 to 64", "channels; 0: automatic", true, &S::channels, 0, kMostChannels},
      {"TOPOCCL_RANGE_TABLE", "", "path, or the table itself",
       "which algorithm and protocol serves which size; its contents must agree, its path need not", false,
       &S::rangeTable},
  };
  return *rows;
}

namespace {

const ForkHook kHook([] { settingRows(); });

// What one row does not show.
void checkTogether(const Settings& settings) {
  Level level;
  if (!parseLevel(settings.debug, level)) reject(settingRows().front(), settings.debug);
  const auto slots = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(settings.slots)));
  if (slots * settings.slotBytes > kMostSlotsBytes)
    throw Error(Code::InvalidArgument,
                concat("TOPOCCL_SLOTS=", settings.slots, " is not valid with TOPOCCL_SLOT_BYTES=",
                       settings.slotBytes, "; allowed: slots, up to a power of two, of at most ",
                       kMostSlotsBytes, " bytes together, here 0 to ",
                       std::bit_floor(static_cast<uint64_t>(kMostSlotsBytes / settings.slotBytes))));
}

}  // namespace

Settings readSettings(const Environment& environment) {
  Settings settings;
  for (const SettingRow& row : settingRows()) {
    const char* value = environment(row.name);
    if (value && *value) std::visit(Assign{settings, row, value}, row.field);
  }
  checkTogether(settings);
  return settings;
}

Settings readSettings() {
  return readSettings([](const char* name) -> const char* { return std::getenv(name); });
}

std::string printValue(const Settings& settings, const SettingRow& row) {
  const std::string value = std::visit(Print{settings}, row.field);
  return isSecret(row) && !value.empty() ? "(hidden)" : value;
}

std::vector<std::string> settingsSet(const Environment& environment) {
  std::vector<std::string> lines;
  for (const SettingRow& row : settingRows()) {
    const char* value = environment(row.name);
    if (!value || !*value) continue;
    std::string text = isSecret(row) ? "(hidden)" : value;
    std::replace_if(
        text.begin(), text.end(), [](unsigned char c) { return c < ' '; }, ' ');
    lines.push_back(concat(row.name, " set by environment to ", text, "."));
  }
  return lines;
}

std::string agreedText(const Settings& settings) {
  std::string text;
  for (const SettingRow& row : settingRows())
    if (row.mustAgree) text += concat(row.name, "=", printValue(settings, row), "\n");
  return text;
}

std::string describeSettings() {
  std::string text =
      "| variable | default | allowed | must agree | meaning |\n| --- | --- | --- | --- | --- |\n";
  for (const SettingRow& row : settingRows())
    text += concat("| ", row.name, " | ", *row.standard ? row.standard : "unset", " | ", row.allowed, " | ",
                   row.mustAgree ? "yes" : "no", " | ", row.meaning, " |\n");
  return text;
}

}  // namespace topoccl
