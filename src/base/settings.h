// All settings of the library, as one value: read from the environment once, then passed down. The rows below
// are the only list of names; docs/base.md prints them and a test compares.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace topoccl {

enum class DeviceChoice : uint8_t { Auto, Cpu, Cuda };

struct Settings {
  std::string debug;
  std::string debugSubsystems;
  std::string debugFile;
  std::string algorithms;
  std::string protocols;
  std::string socketInterfaces;
  std::string commId;
  std::string secret;
  std::string hostId;
  int64_t bufferBytes = 4194304;
  DeviceChoice device = DeviceChoice::Auto;
  std::chrono::milliseconds initTimeout{120'000};
  std::chrono::milliseconds collectiveTimeout{0};  // 0: none
  std::chrono::milliseconds reportAfter{60'000};   // 0: never
  int64_t spin = -1;                               // -1: the library chooses
  bool references = true;
  int64_t crossMemory = -1;  // -1: the library chooses
  int64_t slotBytes = 0;     // 0: the library chooses; likewise slots and channels
  int64_t slots = 0;
  int64_t channels = 0;
  std::string rangeTable;
};

// One variable. `mustAgree`: ranks with different values would compute different schedules or connections, so
// init compares these.
struct SettingRow {
  using Field = std::variant<std::string Settings::*, int64_t Settings::*, bool Settings::*,
                             std::chrono::milliseconds Settings::*, DeviceChoice Settings::*>;
  const char* name;
  const char* standard;  // default, as text
  const char* allowed;
  const char* meaning;
  bool mustAgree;
  Field field;
  int64_t low = 0;  // bounds of numbers and of times, in milliseconds
  int64_t high = 0;
};

const std::vector<SettingRow>& settingRows();

// Returns a variable's value or nullptr, as getenv does.
using Environment = std::function<const char*(const char*)>;

// An empty variable counts as unset. Throws InvalidArgument that names variable, value and what is allowed.
Settings readSettings(const Environment& environment);
Settings readSettings();  // from getenv

// The row's value as text; "(hidden)" for a secret that is set.
std::string printValue(const Settings& settings, const SettingRow& row);

// "NAME set by environment to VALUE." for each variable that is set, on one line each; secrets are hidden.
std::vector<std::string> settingsSet(const Environment& environment);

// "NAME=value" lines of the mustAgree rows.
std::string agreedText(const Settings& settings);

// All rows as a Markdown table: for docs and --help.
std::string describeSettings();

}  // namespace topoccl
